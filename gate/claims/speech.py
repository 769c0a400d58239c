"""Whether a sentence says that a run covers something, of how many runs it speaks, and which of its pieces it says that of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

COVERS = re.compile(r"\bcover(?:s|ed|ing)?\b", re.IGNORECASE)
_RUN = re.compile(r"\b(?:re-?)?runs?\b|\b(?:records?|evidence|sessions?|measurements?|benchmarks?|executions?)\b", re.IGNORECASE)
_RUNNING = re.compile(  # the verb
    r"\b(?:to|we|you|i|they|who|which|be|been|being|was|were|is|are|not|then|tests|checks|goldens|(?:tests|checks|goldens|ones)\s+that)\s+run\b",
    re.IGNORECASE,
)
_OTHERS = r"(?:tests?|checks?|goldens?|suites?|mutants?|scenarios?|pages?|packages?|sections?|chapters?|documents?|lists?|tables?|issues?)"
_BY_OTHERS = re.compile(
    rf"\b{_OTHERS}\s+(?:\d+\s+)?(?:\w+ly\s+|also\s+|both\s+|that\s+|which\s+)?cover|\bcovered\s+(?:by|in)\s+(?:\w+\s+){{0,2}}{_OTHERS}\b",
    re.IGNORECASE,
)
_UNSAID = re.compile(
    r"\b(?:if|whether|unless|until)\b[^,;]*\bcover|\b(?:to|will|would|shall|should|must|(?-i:may)|might|can|could)\s+(?:\w+\s+){0,2}cover|\?\W*\Z",
    re.IGNORECASE,
)
_NOT = re.compile(
    r"\bnot\b(?!\s+(?:only|just|merely)\b)|\bno\b(?!\.?\s*\d)|\b(?:never|nor|neither|without|except(?:ing)?|excluding|cannot|unlike|instead)\b"
    r"|\brather\s+than\b|n['\u2019]t\b",
    re.IGNORECASE,
)
_NO = re.compile(r"\W*(?:no|none|not\s+(?:yet|run|covered|measured)(?:\s+\w+)?)\W*", re.IGNORECASE)
_CUT = re.compile(
    r"[,:;|()]|\b(?=(?:without|except(?:ing)?|excluding|unlike|instead|rather)\b)|\b(?:and|but|while|whereas)\b"
    r"|\n[ \t]*\n|\n(?=[ \t]*(?:[-*+|]|\d+[.)]))",
    re.IGNORECASE,
)
_STRONG = re.compile(r";|,\s*(?:and|but|while|whereas)\b|\b(?:but|while|whereas)\b", re.IGNORECASE)
_MORE = (  # names alone, and words that say of them what was said of others
    r"\W*(?:(?:and|also|both|too|as|well|likewise|so|is|are|was|were|it|does|did|cover(?:s|ed)?|by|the|commits?|revisions?|[0-9a-f]{4,64})(?:\W+|\Z))*\Z"
)
_AGAIN = re.compile(_MORE, re.IGNORECASE)
_APART = re.compile(rf";(?!{_MORE})", re.IGNORECASE)  # what is not said of the run
_WEAK = re.compile(r",|\band\b", re.IGNORECASE)
_SAME = re.compile(r"\W*(?:(?:and|it|also|then|too|still|thus|even|which|that|and|has|had)\W+)*", re.IGNORECASE)
_ANOTHER = re.compile(
    r"(?:\A\W*(?:(?:and|but|while|whereas)\s+)?|\bcovered\s+by\s+)(?:(?:the|an?)\s+)?(?:another|second|third|other|next|later|latter|last|one)\b",
    re.IGNORECASE,
)
_SEVERAL = re.compile(
    r"(?<!\bboth\s)(?<!\ball\s)(?<!\ball\sthe\s)\b(?:runs|records|sessions|benchmarks|executions)\b"
    r"|\b(?:each|every|per)\s+(?:\w+\s+)?(?:run|record|session|benchmark)\b|\beach\s+cover|\brespectively\b|\brun\s+of\s+its\s+own\b"
    r"|\brun\s+#?(?P<number>\d+)\b.*\brun\s+#?(?!(?P=number)\b)\d"
    r"|\b(?:first|one|former)\b.*\b(?:second|another|other|latter|third)\b(?!\s+(?:commit|revision))",
    re.IGNORECASE | re.DOTALL,
)
_PRONOUN = r"(?:.*\bit\W+|\W*)(?:also\W+)?\Z"  # before a verb
_IT = re.compile(rf"\W*(?:it|this|that|they|these)\b(?!\s+(?:page|work|document))|{_PRONOUN}", re.IGNORECASE | re.DOTALL)
_COMMITS = re.compile(r"\b(?:commits?|revisions?)\b", re.IGNORECASE)
# What is evidence where commits are said.
_JOB = re.compile(r"\b(?:ci|jobs?|pipelines?|workflows?|builds?|verif\w+|validations?|checks?)\b", re.IGNORECASE)
_NUMBERED = re.compile(rf"(?:{_RUN.pattern}|{_JOB.pattern})\W{{1,4}}(?P<number>\w*\d\w*)", re.IGNORECASE)
_TOLD = re.compile(r"\b(?!(?:also|both|only|now|then|by|has|have|is|was|been|it|this|that|they|these|the|same)\b)[\w-]+")
_INDEFINITE = re.compile(r"\b(?:an?|one|another|each|every|some|second|third|other|next|later|latter|last)\b")
_ON_A_RUN = re.compile(rf"\W*(?:[\w-]+\s+){{0,3}}(?:{_RUN.pattern})", re.IGNORECASE)


def speaks_of_a_run(text: str) -> bool:
    """Whether words name a run, or what else is evidence."""
    return _RUN.search(_RUNNING.sub("", text)) is not None


def speaks_of_several(text: str) -> bool:
    """Whether words speak of more runs than one, each of which may have covered something else."""
    return _SEVERAL.search(text) is not None


def says(text: str, before: str = "") -> bool:
    """Whether a sentence says that a run covers something.

    Args:
        text: the sentence, or a part of one.
        before: what stands before it, which tells what "it" is.
    """
    verb = COVERS.search(text)
    if verb is None or (_BY_OTHERS.search(text) and not _is_job(text, text)) or _UNSAID.search(text):
        return False
    if denies(text, COVERS):
        return False
    subject = text[: verb.start()]
    passive = verb[0].lower() == "covered" and _is_evidence(text[verb.end() :], text)
    return passive or _is_evidence(subject, text) or (_IT.match(subject) is not None and _ON_A_RUN.match(before) is not None)


def _is_evidence(part: str, text: str) -> bool:
    return speaks_of_a_run(part) or _is_job(part, text)


def _is_job(part: str, text: str) -> bool:
    return _JOB.search(part) is not None and _COMMITS.search(text) is not None


@dataclass(frozen=True)
class Clause:
    """A part of a sentence that says of one run, or of several together, what it covers.

    Attributes:
        begin, end: where it stands in the sentence.
        run: words that tell the run, "#" before a number; none where it is the one of which something was said before.
        alone: whether the same words again are another run, as "a run".
    """

    begin: int
    end: int
    run: str
    alone: bool


def clauses(sentence: str, before: str = "", said: bool = False) -> Iterator[Clause]:
    """The parts of a sentence that say what a run covers.

    Args:
        sentence: it.
        before: what stands before it and tells what "it" is.
        said: whether that says what a run covers, so that names alone are more of it.
    """
    last = before
    for begin, end in _parts(sentence):
        part = sentence[begin:end]
        another = said and _ANOTHER.search(part) is not None and not _BY_OTHERS.search(part) and not _UNSAID.search(part)
        again = said and _AGAIN.match(part) is not None
        said = says(part, last) or another or again
        last = part
        if said:
            verb = COVERS.search(part)
            other = _APART.search(part, verb.end() if verb else 0)
            run = "" if again else _run(part)
            yield Clause(begin, begin + other.start() if other else end, run, _INDEFINITE.search(run) is not None)


def refers(text: str) -> bool:
    """Whether a sentence begins with what was told before it."""
    return _IT.match(text) is not None


def _run(part: str) -> str:
    """The words of a part that tell its run: a number, or else all that covers, or that something is covered by."""
    verb = COVERS.search(part)
    numbered = _NUMBERED.search(part)
    if numbered:
        return "#" + " ".join(re.findall(r"\w+", numbered[0].lower()))
    passive = verb is not None and re.match(r"\s+by\b", part[verb.end() :]) is not None
    told = part if verb is None else re.split(r"[,;:.(]", part[verb.end() :])[0] if passive else part[: verb.start()]
    return "" if re.match(_PRONOUN, told, re.IGNORECASE | re.DOTALL) else " ".join(_TOLD.findall(told.lower()))


def affirmed(text: str) -> Iterator[tuple[int, int]]:
    """Begin and end of each piece of a text that denies nothing: in "A, not B" the first, in "A (not yet)" none."""
    if any(_NO.fullmatch(piece) for _, _, piece in _pieces(text)):
        return iter(())
    return ((begin, end) for begin, end, piece in _pieces(text) if not _NOT.search(piece))


def denies(text: str, pattern: re.Pattern[str] = re.compile("")) -> bool:
    """Whether a piece of a text that holds a pattern is denied."""
    return any(_NOT.search(piece) and pattern.search(piece) for _, _, piece in _pieces(text))


def _pieces(text: str) -> Iterator[tuple[int, int, str]]:
    begin = 0
    for stop, after in [*(cut.span() for cut in _CUT.finditer(text)), (len(text), len(text))]:
        yield begin, stop, text[begin:stop]
        begin = after


def _parts(sentence: str) -> Iterator[tuple[int, int]]:
    """A sentence cut before the subject of every verb that covers but the first."""
    begin = 0
    verbs = list(COVERS.finditer(sentence))
    for verb, other in pairwise(verbs):
        between = sentence[verb.end() : other.start()]
        passive = verb[0].lower() == "covered" and re.match(r"\s+by\b", between) is not None
        weak = list(_WEAK.finditer(between))
        cut = _STRONG.search(between) or (weak[0 if passive else -1] if weak else None)
        if cut and not _SAME.fullmatch(between[cut.end() :]):
            yield begin, verb.end() + cut.start()
            begin = verb.end() + cut.start()
    yield begin, len(sentence)
