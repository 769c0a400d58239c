"""The `gate` command: proves that a change to training code has not moved a single bit, and says where and why when it has."""

__version__ = "0.1.0"
