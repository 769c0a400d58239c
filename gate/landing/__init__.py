"""`gate run`: may this tree be merged?

```
line        one line of its table
work        check, mutate, verify: done where no fresh record stands for them
words       status, golden changes, claims, trailers: what is said, held to what is there
command     all of it, worst exit code
```
"""
