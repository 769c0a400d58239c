"""Whether the tests that a promise names hold it: they exist, passed, and notice a fault of what promises."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from gate.claims.issue import Issue, Weight
from gate.claims.promises import Promise, matches, within
from gate.claims.tags import FORM
from gate.claims.witnesses import Witnesses
from gate.collected import Answer
from gate.evidence.judging import COMMANDS, command
from gate.evidence.required import Need
from gate.machine import device_of

Found = tuple[Weight, str, Sequence[Need]]  # with what a merge needs and is not there
Answers = Callable[[str, str], Answer]


def judged(promise: Promise, answers: Answers, witnesses: Witnesses, needs: Sequence[Need] = ()) -> Iterator[Issue]:
    """What is wrong with a promise.

    Where there is no evidence, or none but of a change, or some is lacking that a merge needs, the promise is inconclusive, as it may be
    where a change leaves it alone. Where all is there that a merge needs, and does not reach the promise, it is not judged.

    Args:
        promise: the sentence.
        answers: what pytest collects, by a file and a name in it ("TestA::test_b").
        witnesses: the evidence.
        needs: what a merge needs.
    """
    for test in promise.tests:
        found = _judged(promise, test, answers, witnesses, needs)
        if found:
            weight, told, lacking = found
            yield Issue(weight, promise.file, promise.line, told, tuple(dict.fromkeys(need.hardware for need in lacking)))


def _judged(promise: Promise, test: str, answers: Answers, witnesses: Witnesses, needs: Sequence[Need]) -> Found | None:
    file, _, name = test.partition("::")
    if not file.endswith(".py") or not name:
        return Weight.CLAIM, f"is held by {test or 'nothing'}, which names no test. Write {FORM}", ()
    passed = any(matches(name, ran) for ran in (witnesses.passed or {}).get(file, ()))
    answer = Answer.TEST if passed else answers(file, name.partition("[")[0])  # what passed is there, whoever made it
    if answer is Answer.CLASS:
        return Weight.CLAIM, f"is held by {test}, which is a class. Name the tests in it that hold this, one by one", ()
    if answer is Answer.NONE:
        told = "which does not exist, or pytest does not collect it"
        return Weight.CLAIM, f"is held by {test}, {told}. Name a test that it does collect, or take the tag out", ()
    lacking = _lacking("tests", witnesses, needs)
    ask = f"Run {command(lacking[0]) if lacking else COMMANDS['tests']}{_unless('tests', needs)}"
    if witnesses.passed is None:
        return Weight.INCONCLUSIVE, f"is held by {test}: there is no fresh evidence that it ran. {ask}", lacking
    if not passed:
        if lacking or not witnesses.whole("tests"):
            return Weight.INCONCLUSIVE, f"is held by {test}: it passed in no fresh record, and not all are fresh. {ask}", lacking
        return Weight.CLAIM, f"is held by {test}, which did not pass in any fresh record. Let it pass, or name another", ()
    if witnesses.killers is None:
        ask = f"Run {_asking(promise, test, {}, needs)}{_unless('mutation', needs)}"
        told = f"is held by {test}: there is no fresh evidence of mutants that it could have killed. {ask}"
        return Weight.INCONCLUSIVE, told, _lacking("mutation", witnesses, needs, _source(promise))
    return _kills(promise, test, witnesses.killers, witnesses, needs)


def _kills(promise: Promise, test: str, killers: Mapping[str, frozenset[str]], witnesses: Witnesses, needs: Sequence[Need]) -> Found | None:
    where = promise.function or "anything"
    own = [ids for function, ids in killers.items() if promise.function is None or within(function, promise.function)]
    if any(matches(test, killer) for ids in own for killer in ids):
        return None
    file = _source(promise)
    lacking = _lacking("mutation", witnesses, needs, file)
    unsure = bool(lacking) or not witnesses.whole("mutation")
    asked = {hardware for hardware, ids in witnesses.asked(file).items() if any(matches(test, one) for one in ids)}
    if asked and (not unsure or any(device_of(hardware) == "cpu" for hardware in asked)):
        told = "Name a test that does, let this one notice a fault, or promise less"
        none = "" if own or not file else f" (no test kills any there: where there is no code for one, let {file} or README.md promise)"
        return Weight.CLAIM, f"is held by {test}, which kills no mutant of {where}{none}. {told}", ()
    why = f"it was asked about no mutant of {where}" if own else f"no mutant of {where} was killed by anything"
    told = f"is held by {test}: {why}. Ask it: {_asking(promise, test, killers, needs)}"
    if file and not any(need.check == "mutation" and _within(file, need.paths) for need in needs):
        told += f". A merge needs no mutants of {file}: [tool.gate.required] paths"
    return Weight.INCONCLUSIVE if unsure else Weight.UNJUDGED, told, lacking


def _source(promise: Promise) -> str | None:
    return promise.function.partition("::")[0] if promise.function else None


def _lacking(check: str, witnesses: Witnesses, needs: Sequence[Need], file: str | None = None) -> list[Need]:
    """What a merge needs and is not there, which could still show what that which is there does not."""
    found = (need for need in needs if need.check == check and (file is None or _within(file, need.paths)))
    return [need for need in found if not witnesses.whole(check, need)]


def _unless(check: str, needs: Sequence[Need]) -> str:
    return "" if any(need.check == check for need in needs) else f", and put {check} into [tool.gate.required]"


def _within(file: str, paths: Sequence[str]) -> bool:
    return not paths or any(path in (".", file) or file.startswith(f"{path}/") for path in paths)


def _asking(promise: Promise, test: str, killers: Mapping[str, frozenset[str]], needs: Sequence[Need]) -> str:
    """The command that asks a test about mutants: of what promises, else of what its neighbours notice, else of all that is needed."""
    file = test.partition("::")[0]
    known = Counter(function.partition("::")[0] for function, ids in killers.items() for one in ids if one.startswith(f"{file}::"))
    source = _source(promise) or next((name for name, _ in known.most_common(1)), None)
    need = next((need for need in needs if need.check == "mutation"), None)
    asked = f"gate mutate {source}" if source else command(need) if need else "gate mutate"
    return f"{asked} (with --all-tests where {file} imports nothing of it)"
