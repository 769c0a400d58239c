"""Torch versions as text: what a user may ask for, and whether a build is one of it."""

from __future__ import annotations

import re

_VERSION = re.compile(r"v?(\d+(?:\.\d+)*(?:(?:a|b|rc)\d+)?(?:\.post\d+)?(?:\.dev\d+)?)(?:\+([a-z0-9]+(?:[._-][a-z0-9]+)*))?", re.IGNORECASE)


def valid(text: str) -> bool:
    """Whether `text` is a version such as "2.9.1", "2.9.1+cu129" or "2.10.0.dev20250901"."""
    return _VERSION.fullmatch(text) is not None


def public(version: str) -> str:
    """The version without its local part: "2.9.1" of "2.9.1+cu129"."""
    return version.partition("+")[0]


def agrees(asked: str, measured: str) -> bool:
    """Whether a build is what was asked for: "2.9.1" means any build of it, "2.9.1+cu129" that build alone; "2.9" is 2.9.0."""
    wanted, build = _split(asked)
    version, local = _split(measured)
    return wanted == version and build in ("", local)


def _split(text: str) -> tuple[str, str]:
    match = _VERSION.fullmatch(text.strip())
    if match is None:
        return text, ""
    release = re.sub(r"^(\d+(?:\.\d+)*?)(?:\.0)*(?=$|[abr]|\.[pd])", r"\1", match[1].lower())
    return release, (match[2] or "").lower()
