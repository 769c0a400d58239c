"""Real git repositories for tests."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from golden.sources import digest_text

IDENTITY = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@b"}


def git(folder: Path, *arguments: str) -> str:
    """What git prints, its identity given and no configuration of the machine read."""
    environment = {**os.environ, **IDENTITY, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    command = ["git", "-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, text=True).stdout.strip()


def init(folder: Path) -> Path:
    """An empty repository."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q")
    return folder


def write(folder: Path, files: Mapping[str, str | bytes | None]) -> None:
    """Files with their content; None removes one."""
    for name, content in files.items():
        path = folder / name
        if content is None:
            path.unlink()
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def commit(folder: Path, files: Mapping[str, str | bytes | None], message: str = "change") -> str:
    """Writes files and commits everything; the commit's full id."""
    write(folder, files)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", message)
    return git(folder, "rev-parse", "HEAD")


def digests(folder: Path, *paths: str) -> dict[str, str]:
    """Digests of files as they are now, as a manifest holds them."""
    return {path: digest_text((folder / path).read_bytes()) for path in paths}
