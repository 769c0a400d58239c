"""In which order tests are asked about a mutant, and that those which a promise names are asked whatever others notice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gate.claims.promises import Promise
from gate.mutation import evidence
from gate.mutation.mutant import Judgement, Mutant, Status
from gate.mutation.order import Held, Order, held
from tests.gate.mutation.tiny import SHOP, TESTS, Tiny

A, B, C = "t.py::test_a", "t.py::test_b[1]", "t.py::test_c"
KNOWN = evidence.Tests({A: "t.py", B: "t.py", C: "t.py"}, {A: 0.1, B: 0.2, C: 30.0})


def mutant(scope: str = "Shop.open") -> Mutant:
    return Mutant("shop.py", 1, 1, "number", "a = 1", "a = 2", (1, 1), scope)


def kill(test: str, scope: str = "Shop.open") -> Judgement:
    return Judgement(mutant(scope), Status.KILLED, ("tests",), "", (test,))


def test_what_takes_long_is_asked_last() -> None:
    batches = Order(KNOWN).batches(mutant(), [A, B, C])
    assert (batches.named, batches.first, batches.more, batches.last) == ([], [A, B], [], [C])


def test_a_test_that_noticed_a_neighbour_is_asked_before_faster_ones() -> None:
    order = Order(KNOWN)
    order.note(kill(B))
    assert order.batches(mutant(), [A, B, C]).first == [B, A]
    assert order.batches(mutant("Shop.close"), [A, B, C]).first == [B, A]
    other = Mutant("other.py", 1, 1, "number", "", "", (1, 1))
    assert order.batches(other, [A, B, C]).first == [A, B]


def test_a_named_test_is_asked_until_it_has_killed_a_mutant_of_what_promises() -> None:
    (promise,) = held([Promise("shop.py", 1, "", "shop.py::Shop", ("t.py::test_b",))], KNOWN)
    assert promise == Held("shop.py::Shop", frozenset({B}))
    order = Order(KNOWN, [promise])
    assert order.batches(mutant(), [A, B]).named == [B]
    assert order.batches(mutant("function"), [A, B]).named == []
    order.note(kill(A))
    order.note(kill(B, "function"))
    assert order.batches(mutant(), [A, B]).named == [B]
    order.note(kill(B))
    assert order.batches(mutant(), [A, B]).named == []


def test_a_test_that_did_not_pass_here_is_asked_nothing() -> None:
    assert held([Promise("shop.py", 1, "", "shop.py::Shop", ("t.py::test_lost",))], KNOWN) == ()


def test_an_earlier_verdict_does_not_do_where_the_named_test_was_not_asked() -> None:
    order = Order(KNOWN, [Held("shop.py::Shop", frozenset({B}))])
    assert order.owed(kill(A), [A, B])
    assert not order.owed(kill(A), [A])
    asked = Judgement(mutant(), Status.KILLED, ("tests",), "", (A,), (B,))
    assert not order.owed(asked, [A, B])


def record(tiny: Tiny) -> dict[str, Any]:
    (file,) = (tiny.folder / ".gate/evidence").glob("mutation-*.json")
    details: dict[str, Any] = json.loads(file.read_text())["predicate"]["details"]
    return details


def test_the_record_says_of_each_named_test_whether_it_kills(tmp_path: Path) -> None:
    """A slow test that holds a promise is found to, though a fast one notices as much; one that holds nothing is found out."""
    slow = "\n\ndef test_slow():\n    import time\n\n    time.sleep(0.1)\n    assert Basket((1, 2, 3)).full()\n"
    idle = "\n\ndef test_idle():\n    Basket((1, 2, 3)).full()\n"
    told = '        """Never wrong [held by tests/test_shop.py::test_slow, tests/test_shop.py::test_idle]."""\n'
    head = "    def full(self):\n"
    plain = Tiny.new(tmp_path / "plain", SHOP, TESTS + slow + idle)
    promising = Tiny.new(tmp_path / "promising", SHOP.replace(head, head + told), TESTS + slow + idle)
    for tiny in (plain, promising):
        assert tiny.mutate("src/shop.py", "--jobs", "1").document["verdict"] == "survived"
    key = "src/shop.py::Basket.full"
    assert record(plain)["killed"][key] == ["tests/test_shop.py::test_full"]
    assert record(plain)["asked"] == []
    assert "tests/test_shop.py::test_slow" in record(promising)["killed"][key]
    assert "tests/test_shop.py::test_idle" not in record(promising)["killed"][key]
    assert record(promising)["asked"] == ["tests/test_shop.py::test_idle", "tests/test_shop.py::test_slow"]
