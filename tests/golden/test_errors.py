"""The family of errors."""

from __future__ import annotations

import errno
import pickle
from pathlib import Path

import pytest

from golden import errors
from golden.errors import CorruptGolden, GoldenError, Locked, MissingGolden, Refused, ScenarioFailed, StoreError, UsageError

EXAMPLES = [
    (ScenarioFailed("nothing was recorded"), "scenario-failed", "nothing was recorded"),
    (
        Refused("model/w", "MyTensor", "record its plain tensor instead"),
        "scenario-failed",
        "model/w: MyTensor cannot be recorded: record its plain tensor instead",
    ),
    (CorruptGolden(Path("a/manifest.json"), "is missing"), "corrupt-golden", "a/manifest.json: is missing"),
    (MissingGolden("no golden of digits"), "no-golden", "no golden of digits"),
    (Locked(Path("goldens/.lock"), "process 7"), "locked", "goldens/.lock: held by process 7: wait for it to end, or end it"),
    (StoreError(Path("a"), "No space left on device"), "io", "a: No space left on device"),
    (UsageError("--steps takes a number"), "usage", "--steps takes a number"),
]


@pytest.mark.parametrize(("error", "reason", "message"), EXAMPLES, ids=lambda value: type(value).__name__)
def test_every_error_has_its_reason_and_says_what_it_is_about(error: GoldenError, reason: str, message: str) -> None:
    assert (error.reason, str(error)) == (reason, message)


@pytest.mark.parametrize("error", [error for error, _, _ in EXAMPLES], ids=lambda error: type(error).__name__)
def test_every_error_survives_pickling(error: GoldenError) -> None:
    """What a child process raises can be told by its parent."""
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


def test_every_error_has_an_example_here() -> None:
    family = {value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, GoldenError)}
    assert family - {GoldenError} == {type(error) for error, _, _ in EXAMPLES}


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.ENOSPC, "whatever", "full/file"), "full/file: No space left on device"),
        (OSError(errno.EACCES, "whatever", "from", None, "to"), "to: Permission denied"),
        (OSError(errno.EIO, "whatever"), "given: Input/output error"),
        (OSError("no number"), "given: no number"),
        (OSError(errno.ENOENT, "whatever", b"bytes"), "bytes: No such file or directory"),
        (OSError(errno.EBADF, "whatever", 7), "given: Bad file descriptor"),
    ],
)
def test_an_error_of_the_system_names_the_file_it_is_about(error: OSError, message: str) -> None:
    assert str(StoreError.of(error, Path("given"))) == message
