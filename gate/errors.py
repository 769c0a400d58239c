"""What gate raises, beside golden's own family. One `except GoldenError` at the command line's door takes them all.

```
GoldenError                 golden.errors; `reason` is the verdict's reason
├── UsageError              golden.errors; exit code 2
│   └── ConfigurationError  pyproject.toml says something that gate does not take
│       └── Unconfigured    there is none that speaks of gate
├── NoTorch                 no interpreter with the torch that was asked for
├── NoAccelerator           no device of the kind that was asked for
└── BaselineFailed          the state to compare with cannot be had from version control
```
"""

# ruff: noqa: N818  (the names say what is the case, as a verdict does)

from __future__ import annotations

from typing import ClassVar

from golden.errors import GoldenError, UsageError

__all__ = ["BaselineFailed", "ConfigurationError", "GoldenError", "NoAccelerator", "NoTorch", "Unconfigured", "UsageError"]


class ConfigurationError(UsageError):
    """The configuration is wrong; the message names the file and the key."""


class Unconfigured(ConfigurationError):
    """No pyproject.toml here or above has a table [tool.gate]."""


class NoTorch(GoldenError):
    """The torch asked for cannot be had; the message says why and what would bring it."""

    reason: ClassVar[str] = "no-torch"


class NoAccelerator(GoldenError):
    """The device asked for is not here."""

    reason: ClassVar[str] = "no-accelerator"


class BaselineFailed(GoldenError):
    """Version control does not give the state to compare with."""

    reason: ClassVar[str] = "baseline-failed"
