"""Evidence: what a check that ran leaves behind, and what may be said from it later.

A check takes a `Snapshot` before it starts and calls `leave` when it has ended:

```python
before = Snapshot.take(config)
...                                            # the tests run, the mutants are tried
leave(config, before, Finding("tests", "cpu", torch, "passed", {"passed": 169, "skipped": 3}), Reading(files, ...))
```

`leave` raises `StaleEvidence` (exit code 3, `stale-evidence`) where something that was read has been written meanwhile; then there is no
record, for no state of the project ever gave that result. Nothing here runs a check, loads torch, or knows the command line.
"""

from __future__ import annotations

from gate.evidence.leaving import Finding, leave
from gate.evidence.reading import Reading
from gate.evidence.snapshot import Snapshot, StaleEvidence

__all__ = ["Finding", "Reading", "Snapshot", "StaleEvidence", "leave"]
