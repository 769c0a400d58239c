"""In which order tests are asked about a mutant: those that a promise names, those that noticed its neighbours, the fast ones, the rest."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gate.claims import promises
from gate.claims.promises import Promise, matches, within
from gate.mutation.evidence import Tests
from gate.mutation.mutant import Judgement, Mutant

_FIRST_SECONDS, _FIRST_TESTS, _FIRST_FILES = 1.5, 25, 3
_MORE_SECONDS = 10.0
_KILLERS = 6


@dataclass(frozen=True)
class Batches:
    """The tests of one mutant.

    Attributes:
        named: of promises whose named test has killed nothing yet: all of them run, and every failure counts.
        first: a few fast ones.
        more: those that fit into some seconds.
        last: all others: asked only about what nobody else has noticed.
    """

    named: Sequence[str]
    first: Sequence[str]
    more: Sequence[str]
    last: Sequence[str]


@dataclass(frozen=True)
class Held:
    """A promise and a test that is said to hold it.

    Attributes:
        function: "FILE::NAME" of what promises; None for a document, whose promise any killed mutant shows to be tested.
        tests: the ids that the name stands for: without parameters it stands for all of them.
    """

    function: str | None
    tests: frozenset[str]

    def asks(self, mutant: Mutant) -> bool:
        """Whether a mutant lies in what promises."""
        return self.function is None or within(f"{mutant.file}::{mutant.scope}", self.function)


def held(found: Iterable[Promise], tests: Tests) -> tuple[Held, ...]:
    """Each named test of each promise, as far as it passed here."""
    each = ((promise.function, name) for promise in found for name in promise.tests)
    resolved = (Held(function, frozenset(test for test in tests.seconds if matches(name, test))) for function, name in each)
    return tuple(dict.fromkeys(one for one in resolved if one.tests))


def promised(sources: Mapping[str, str], documents: Mapping[str, str]) -> list[Promise]:
    """The promises of the mutated files and of the project's documents."""
    found = [promise for file, text in sources.items() for promise in promises.of_source(file, text)]
    return found + [promise for file, text in documents.items() for promise in promises.of_document(file, text)]


class Order:
    """Remembers what noticed which mutant. Several threads may ask.

    Args:
        tests: what the unmutated tree showed.
        named: promises, and the tests that are to hold them.
    """

    def __init__(self, tests: Tests, named: Sequence[Held] = ()) -> None:
        self.tests = tests
        self.named = tuple(named)
        self._done: set[Held] = set()
        self._killers: dict[tuple[str, ...], OrderedDict[str, None]] = {}
        self._lock = threading.Lock()

    def batches(self, mutant: Mutant, covering: Sequence[str]) -> Batches:
        """The tests that run a mutant's code, the fastest first, in the order in which they are asked."""
        with self._lock:
            waiting = {test for one in self.named if one not in self._done and one.asks(mutant) for test in one.tests}
            known = self._recent((mutant.file, mutant.scope)) or self._recent((mutant.file,))
        here = set(covering)
        named = [test for test in covering if test in waiting]
        order = [test for test in dict.fromkeys([*(test for test in known if test in here), *covering]) if test not in waiting]
        first, rest = self._first(order, frozenset(known))
        spent, more = 0.0, 0
        for test in rest:
            spent += self.tests.seconds[test]
            more += spent <= _MORE_SECONDS
        return Batches(named, first, rest[:more], rest[more:])

    def _first(self, order: Sequence[str], known: frozenset[str]) -> tuple[list[str], list[str]]:
        first: list[str] = []
        files: set[str] = set()
        spent = 0.0
        for test in order:
            file, seconds = self.tests.files[test], self.tests.seconds[test]
            short = spent + seconds <= (_MORE_SECONDS if test in known else _FIRST_SECONDS)
            if short and len(first) < _FIRST_TESTS and (file in files or len(files) < _FIRST_FILES):
                first.append(test)
                files.add(file)
                spent += seconds
        chosen = set(first)
        return first, [test for test in order if test not in chosen]

    def _recent(self, place: tuple[str, ...]) -> list[str]:
        return list(reversed(self._killers.get(place, OrderedDict())))

    def note(self, judged: Judgement) -> None:
        """Remembers which tests noticed a mutant: its neighbours ask them first, and a promise that one of them holds is done with."""
        mutant = judged.mutant
        with self._lock:
            for test in judged.tests:
                self._done |= {one for one in self.named if test in one.tests and one.asks(mutant)}
                for place in ((mutant.file, mutant.scope), (mutant.file,)):
                    known = self._killers.setdefault(place, OrderedDict())
                    known[test] = None
                    known.move_to_end(test)
                    if len(known) > _KILLERS:
                        known.popitem(last=False)

    def owed(self, judged: Judgement, covering: Iterable[str]) -> bool:
        """Whether a promise's test that has killed nothing that it should was not asked about a mutant which it runs."""
        here = set(covering) - set(judged.asked)
        return any(one not in self._done and one.asks(judged.mutant) and not here.isdisjoint(one.tests) for one in self.named)
