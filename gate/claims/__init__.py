"""Claims: what documents and docstrings say of checks, held against the evidence.

```
prose       which files are documents, their text without its code, and its sentences
blocks      a page as headings, paragraphs, lists, tables, code
counts      numbers that look like counts of checks
figures     numbers between markers, and those outside them
tags        what names a test in prose, and what was meant to
docstrings  those of a module, and for whose code each speaks
promises    sentences that promise something, and the tests that are named to hold them
holding     whether these tests do
change      which claims a change touches
speech      whether a sentence says that a run covers something
coverage    where a page says what one run covers
pages       the commits and digests that it says are covered
review      all of it over a project
```
"""
