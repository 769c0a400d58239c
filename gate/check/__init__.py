"""Focused checks: runs the tests that a change touches, and says of each why.

```
since, change     what changed: git's side              lines, outline, hidden   what a Python file's lines are
named             tests that trailers name              reach                    which files import which
knowledge         which test ran which lines, kept      choice                   from a change to tests, pure
session, harvest  pytest in processes of its own        judge, result, wording   the command, and what it says
plugin/           what runs beside the tests, in any environment that has pytest and coverage
```
"""
