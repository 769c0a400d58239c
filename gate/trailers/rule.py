"""What commits have to say: `[tool.gate.trailers]`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from gate.config import Config
from gate.errors import ConfigurationError
from golden.keys import nearest, shown

KEYS = ("paths", "required", "known", "since", "work", "provenance")
GOLDEN_CHANGE = "Golden-Change"
COMMON = (
    *("Signed-off-by", "Co-authored-by", "Reviewed-by", "Acked-by", "Tested-by", "Reported-by", "Suggested-by"),
    *("Fixes", "Closes", "Refs", "Cc", "Link", "See-also", "Change-Id"),
)


@dataclass(frozen=True)
class Rule:
    """What commits have to say.

    Attributes:
        paths: the commits that change something below one of them have to carry every required trailer.
        required: the trailers.
        known: others that may stand there, besides those that everybody uses.
        since: the commit before the first one that is held to it, where no other is named; None for all of them.
        work: the folder of the pages that `WP` names.
        provenance: the log whose ids `Provenance` names.
    """

    paths: tuple[str, ...]
    required: tuple[str, ...]
    known: tuple[str, ...] = ()
    since: str | None = None
    work: str = "docs/work"
    provenance: str = "docs/provenance.md"

    @property
    def names(self) -> list[str]:
        """Every trailer that may stand there."""
        return [*self.required, *self.known, GOLDEN_CHANGE, *COMMON]

    @classmethod
    def of(cls, config: Config) -> Rule | None:
        """As configured; None where it is not. Raises ConfigurationError naming the key and the nearest known one."""
        table, where = config.later.get("trailers"), f"{config.file}: [tool.gate.trailers]"
        if table is None:
            return None
        if not isinstance(table, Mapping):
            raise ConfigurationError(f"{where} is {shown(table)}, but has to be a table.")
        for key in table:
            if key not in KEYS:
                raise ConfigurationError(f"{where}: unknown key {key!r}, {nearest(key, list(KEYS))}")
        lists = {key: _list(where, key, table.get(key, [])) for key in ("paths", "required", "known")}
        texts = {key: _text(where, key, table[key]) for key in ("since", "work", "provenance") if key in table}
        if not lists["paths"] or not lists["required"]:
            raise ConfigurationError(f'{where} needs paths and required, such as paths = ["src/toy"] and required = ["WP", "Gate"].')
        rule = cls(lists["paths"], lists["required"], lists["known"], texts.get("since"))
        return replace(rule, work=texts.get("work", cls.work), provenance=texts.get("provenance", cls.provenance))


def _list(where: str, key: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
        raise ConfigurationError(f"{where} {key} = {shown(value)}: has to be a list of strings.")
    return tuple(value)


def _text(where: str, key: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ConfigurationError(f"{where} {key} = {shown(value)}: has to be a string.")
    return value
