"""Claims: what documents and docstrings say of checks, held against the evidence.

```
prose       text without its code, and where a place in it stands
figures     numbers between markers, and numbers outside them that look like counts of checks
promises    sentences that promise something, and the tests that are named to hold them
pages       commits and digests that a page of docs/work says a run covers
review      all of it over a project
```
"""
