"""What is told, written and returned when a command ends by an error."""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gate.errors import GoldenError, UsageError
from gate.output import Target, say
from gate.verdict import FAULT, INTERRUPTED, USAGE, Verdict
from golden.errors import StoreError

# What the system says of disks, permissions and limits: no fault of gate.
_OF_THE_SYSTEM = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EFBIG}
)


def usage(message: str, arguments: Sequence[str]) -> int:
    """The user's mistake."""
    say(f"gate: {message}")
    _write(arguments, {"format": 1, "error": message})
    return USAGE


def interrupted() -> int:
    """Ctrl-C, or the end of the session. No result is written."""
    say("gate: interrupted")
    return INTERRUPTED


def failed(error: Exception, arguments: Sequence[str]) -> int:
    """Any other error: the user's, the machine's, or else a fault of gate itself."""
    if isinstance(error, UsageError):
        return usage(str(error), arguments)
    if isinstance(error, GoldenError):
        return _not_judged(error, arguments)
    if isinstance(error, OSError) and error.errno in _OF_THE_SYSTEM:
        return _not_judged(StoreError.of(error, Path.cwd()), arguments)
    return _fault(error, arguments)


def _not_judged(error: GoldenError, arguments: Sequence[str]) -> int:
    say(f"gate: {error.reason}: {error}")
    verdict = Verdict.NOT_JUDGED
    _write(arguments, {"format": 1, "verdict": verdict.value, "reason": error.reason, "message": str(error), "results": []})
    return verdict.exit_code


def _fault(error: Exception, arguments: Sequence[str]) -> int:
    from gate import fault

    what = f"a fault of gate itself: {type(error).__name__}: {error}"
    text = fault.describe(error, arguments)
    path = fault.save(text)
    say(f"gate: {what}")
    say(f"Please report it with what {path} holds." if path else f"Please report it with this:\n\n{text}")
    _write(arguments, {"format": 1, "error": what})
    return FAULT


def _write(arguments: Sequence[str], document: Mapping[str, Any]) -> None:
    """Where `--json` cannot be written either, standard error has told it already."""
    target = Target.of(arguments)
    try:
        target.check()
        target.write(document)
    except GoldenError:
        return
