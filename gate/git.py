"""Runs git, and reads its objects, without touching the repository that it looks at."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from gate.errors import BaselineFailed

# What a hook exports, and what points git at another repository than that of the folder (`git rev-parse --local-env-vars`). Configuration
# given by variables stays: that is how a container allows a folder of another owner.
_FOREIGN = frozenset(
    f"GIT_{name}"
    for name in (
        *("ALTERNATE_OBJECT_DIRECTORIES", "ATTR_SOURCE", "COMMON_DIR", "CONFIG", "DIR", "EXTERNAL_DIFF", "GLOB_PATHSPECS", "GRAFT_FILE"),
        *(
            "ICASE_PATHSPECS",
            "IMPLICIT_WORK_TREE",
            "INDEX_FILE",
            "LITERAL_PATHSPECS",
            "NAMESPACE",
            "NOGLOB_PATHSPECS",
            "NO_REPLACE_OBJECTS",
        ),
        *("OBJECT_DIRECTORY", "PREFIX", "QUARANTINE_PATH", "REPLACE_REF_BASE", "SHALLOW_FILE", "TRACE", "WORK_TREE"),
    )
)
_OURS = {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
# A temporary index must be one file, whole, and ask no daemon.
_PLAIN = ("core.fsmonitor=false", "core.splitIndex=false", "core.sparseCheckout=false", "index.sparse=false", "core.quotePath=false")
LITERAL = ("--literal-pathspecs",)  # no name is a pattern; goes before a command that takes patterns
SUBMODULE = "160000"  # the mode of its entry in a tree
_FOUND = re.compile(rb"([0-9a-f]{40,64}) (\w+) (\d+)\n")
_LINK = re.compile(rb"(?:dangling|loop|notdir|symlink) (\d+)\n")


def environment(base: Mapping[str, str]) -> dict[str, str]:
    """`base` for a git of ours: no repository but that of the folder, English messages, no prompt, no lock taken in passing."""
    return {key: value for key, value in base.items() if key not in _FOREIGN} | _OURS


def run(folder: Path, *arguments: str | bytes, stdin: bytes = b"", index: Path | None = None, fine: tuple[int, ...] = (0,)) -> bytes:
    """What a git command prints.

    Args:
        folder: where it runs.
        arguments: the command and its arguments.
        stdin: what it reads.
        index: a temporary index to use instead of the repository's.
        fine: the exit codes that are no failure.

    Raises:
        BaselineFailed: there is no git, or it failed; holds its own words.
    """
    variables = environment(os.environ) | ({} if index is None else {"GIT_INDEX_FILE": str(index)})
    done = subprocess.run(_command(arguments), cwd=folder, env=variables, input=stdin, capture_output=True, check=False)
    if done.returncode not in fine:
        raise BaselineFailed(_told(done.stderr, folder))
    return done.stdout


def submodule(top: Path, commit: str, path: str) -> str | None:
    """The commit that a submodule stands at, by its path relative to the repository's folder; None where there is no submodule."""
    fields = os.fsdecode(run(top, *LITERAL, "ls-tree", "-z", commit, "--", path)).split()
    return fields[2] if fields[:1] == [SUBMODULE] else None


def _command(arguments: tuple[str | bytes, ...]) -> list[str | bytes]:
    git = shutil.which("git")
    if git is None:
        raise BaselineFailed("git was not found on the PATH, and the state to compare with is looked for in its history. Install git.")
    return [git, *(word for setting in _PLAIN for word in ("-c", setting)), *arguments]


def _told(stderr: bytes, folder: Path) -> str:
    lines = os.fsdecode(stderr).strip().splitlines()
    text = next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[0] if lines else "git failed and said nothing")
    if "not a git repository" in text:
        return f"{folder} is in no git repository, and the state to compare with is looked for in its history. Run git init, and commit."
    if "dubious ownership" in text:
        return f"git does not trust {folder}, which another user owns. Allow it: git config --global --add safe.directory '{folder}'"
    return f"git in {folder}: {text}"


class Objects:
    """Reads objects of one repository through processes that stay: some tens of microseconds an object. `close` ends them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._checker: subprocess.Popen[bytes] | None = None
        self._reader: subprocess.Popen[bytes] | None = None

    def close(self) -> None:
        """Ends the processes."""
        for process in (self._checker, self._reader):
            if process is not None:
                process.communicate()  # the end of its input is its end

    def find(self, commit: str, path: str) -> str | None:
        """The id of the file at a path of a commit, links within the repository followed; None where there is no file."""
        if "\n" in path:  # the protocol is one name a line
            return None
        if self._checker is None:
            self._checker = self._start("--batch-check", "--follow-symlinks")
        answer = _ask(self._checker, os.fsencode(f"{commit}:{path}"))
        link = _LINK.fullmatch(answer)
        if link:
            _output(self._checker).read(int(link[1]) + 1)
        found = _FOUND.fullmatch(answer)
        return found[1].decode() if found and found[2] == b"blob" else None

    def read(self, blob: str) -> bytes:
        """The content of a file by its id. Raises BaselineFailed where the object is not here."""
        if self._reader is None:
            self._reader = self._start("--batch")
        found = _FOUND.fullmatch(_ask(self._reader, blob.encode()))
        if not found:
            raise BaselineFailed(
                f"git in {self._folder}: object {blob} is missing. Fetch it: git fetch --refetch, or git fsck to see more."
            )
        content = _output(self._reader).read(int(found[3]))
        _output(self._reader).read(1)
        return content

    def _start(self, *options: str) -> subprocess.Popen[bytes]:
        command = _command(("cat-file", *options))
        return subprocess.Popen(
            command, cwd=self._folder, env=environment(os.environ), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )


def _ask(process: subprocess.Popen[bytes], line: bytes) -> bytes:
    assert process.stdin is not None
    process.stdin.write(line + b"\n")
    process.stdin.flush()
    return _output(process).readline()


def _output(process: subprocess.Popen[bytes]) -> IO[bytes]:
    assert process.stdout is not None
    return process.stdout
