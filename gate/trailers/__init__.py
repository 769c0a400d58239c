"""Trailers of commits and the log of provenance: who says what about a change, as git reads it.

```
rule        [tool.gate.trailers]
message     commits, and their trailers as git parses them
verdicts    what is wrong with the trailers of one commit
source      sources in one form, however they are written
rows        rows of tables, in each form that Markdown gives them
log         the log of provenance: each source once, on its first day, in order
review      all of it over a range of commits
```
"""
