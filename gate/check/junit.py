"""A check's outcomes as JUnit XML, which CI services read. Valid whatever tests print, and of bounded size."""

from __future__ import annotations

import re
from xml.sax.saxutils import escape, quoteattr

from gate.check.harvest import Outcome
from gate.check.result import Checked, cut

MOST = 1 << 20  # characters of all messages: some services drop a summary of more than a MiB without a word
_EACH = 20_000
# XML 1.0 has no way to write these, not even as references.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def text(checked: Checked) -> str:
    """The document."""
    failed, unfinished = len(checked.having("failed")), len(checked.having("unfinished"))
    skipped = len(checked.having("skipped")) + len(checked.having("xfailed"))  # as pytest's own JUnit XML has them
    seconds = sum(outcome.seconds for outcome in checked.outcomes.values())
    totals = f'tests="{len(checked.outcomes)}" failures="{failed}" errors="{unfinished}" skipped="{skipped}"'
    head = f'<testsuite name="gate check" {totals} time="{seconds:.3f}">'
    left = MOST
    cases = []
    for key, outcome in checked.outcomes.items():
        message = cut(outcome.text, min(_EACH, left)) if left > 0 else f"[{len(outcome.text)} characters left out]" * bool(outcome.text)
        left -= len(message)
        cases.append(_case(key, outcome, message))
    return "\n".join(['<?xml version="1.0" encoding="utf-8"?>', "<testsuites>", head, *cases, "</testsuite>", "</testsuites>", ""])


def _case(key: str, outcome: Outcome, message: str) -> str:
    file, _, name = key.partition("::")
    *classes, last = name.split("::") if "[" not in name else [*name.partition("[")[0].split("::")[:-1], name[_last(name) :]]
    group = ".".join([file.removesuffix(".py").replace("/", "."), *classes])
    head = f"<testcase classname={_attribute(group)} name={_attribute(last or file)} time={_attribute(f'{outcome.seconds:.3f}')}"
    element = {"failed": "failure", "skipped": "skipped", "xfailed": "skipped", "unfinished": "error"}.get(outcome.status)
    if element is None:
        return f"{head}/>"
    first = message.strip().splitlines()[-1] if message.strip() else outcome.status
    kind = ' type="pytest.xfail"' if outcome.status == "xfailed" else ""
    return f"{head}><{element}{kind} message={_attribute(first[:500])}>{escape(_valid(message))}</{element}></testcase>"


def _last(name: str) -> int:
    """Where the function's own name begins: behind the last "::" before its parameters."""
    return name.partition("[")[0].rfind("::") + 2 if "::" in name.partition("[")[0] else 0


def _attribute(value: str) -> str:
    return quoteattr(_valid(value), {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})


def _valid(value: str) -> str:
    """What XML cannot hold, as an escape."""
    return _FORBIDDEN.sub(lambda match: f"\\x{ord(match[0]):02x}", value)
