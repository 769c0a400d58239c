"""What one clause says that a run covers: its run, and the commits in the plain enumeration beside its verb."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from gate.claims.prose import blank

Named = tuple[int, str]  # the name of a commit, or a digest, after its place

COVERS = re.compile(r"\bcover(?:s|ed|ing)?\b", re.IGNORECASE)
_HEX = r"(?<![\w-])[0-9a-f]{4,64}(?![\w-])"
_NAME = re.compile(_HEX, re.IGNORECASE)
_NOUN = (
    r"\b(?:(?:the|these|this|an?|two|both|following)\s+)*(?:commits?|revisions?|sources|digests?)\b(?:\s+(?:of|at|are|is)\b)?:?"
    r"|\b(?:all\s+of\s+)?(?:the\s+following|these):"
)
_DENIED = r"\(\W*(?:not|no|never|except|without)\b"
_ASIDE = r"\b(?:made|measured)\b[^,;.()]{0,120},(?=\s*and\b)"  # between commas, of the one before
_BESIDE = re.compile(rf"{_ASIDE}|\([^()]*\)", re.IGNORECASE)  # what names nothing that is covered
_ENUMERATION = re.compile(  # ends at the first other word
    rf"(?:[\s`*_,;&/+\[]|\](?:\([^)\s]*\))?|<br\s*/?>|{_NOUN}"
    r"|\b(?:and|or|plus|thus|both|also|too|as\s+well(?:\s+as)?|not\s+only|but\s+also|likewise|so\s+(?:is|are|was|were))\b"
    rf"|{_ASIDE}|{_HEX}(?![`*_\]]*\s*{_DENIED})|\((?!{_DENIED[2:]})(?:(?!(?<![\w-])[0-9a-f]{{7,64}}(?![\w-]))[^()])*\))*",
    re.IGNORECASE,
)
_CLAUSE = re.compile(  # a name that begins the next one: its subject
    rf";\s*[`*_\[(]*{_HEX}[`*_\])]*\s+(?!too\b|also\b|as\b|likewise\b)\w|{_HEX}[`*_\])]*\s+(?:is|are|was|were|has|had|does|did|came|by|not|will|would|shall|should|must|may|can|needs?|differs?)\b",
    re.IGNORECASE,
)
_BE = re.compile(r"\b(?:is|are|was|were)\s+(?:(?:also|both|all|now|then|thus|only)\s+)*\Z", re.IGNORECASE)
_BY = re.compile(r"\s+by\b(?P<who>[^,;:.(]{0,120}?)(?=\s+(?:is|are)\s|[,;:.()]|\Z)(?P<are>\s+(?:is|are)\b|:)?", re.IGNORECASE)
_SO = re.compile(r"\W+so\s+(?:is|are)\b", re.IGNORECASE)
_BEGINS = re.compile(r";|\b(?:but|while|whereas)\b", re.IGNORECASE)
_KEY = re.compile(r"\W*(?:commits?\s+|revisions?\s+)?cover(?:s|ed)?(?:\s+(?:commits?|revisions?))?\W*", re.IGNORECASE)
_MADE = re.compile(r"\b(?:made|recorded|measured|done|run)\s+(?:on\s+(?:[\w-]+\s+){1,3})?at\b", re.IGNORECASE)

_RUN = re.compile(r"\b(?:re-?)?runs?\b|\b(?:records?|evidence|sessions?|measurements?|benchmarks?|executions?)\b", re.IGNORECASE)
_RUNNING = re.compile(  # the verb
    r"\b(?:to|we|you|i|they|who|which|be|been|being|was|were|is|are|not|then|tests|checks|goldens|(?:tests|checks|goldens|ones)\s+that)\s+run\b",
    re.IGNORECASE,
)
_JOB = re.compile(r"\b(?:ci|jobs?|pipelines?|workflows?|builds?|verif\w+|validations?|checks?)\b", re.IGNORECASE)  # where commits are said
_COMMITS = re.compile(r"\b(?:commits?|revisions?)\b", re.IGNORECASE)
_OTHERS = re.compile(
    r"\b(?:tests?|goldens?|suites?|mutants?|scenarios?|pages?|packages?|sections?|chapters?|documents?|lists?|tables?|issues?)"
    r"(?:[\s,]+(?:\d+|also|both|that|which|\w+ly))*\s*\Z",
    re.IGNORECASE,
)
_UNSAID = re.compile(
    r"\b(?:if|whether|unless|until)\b[^,;]*\Z|\A\W*(?:no(?!\.?\s*\d)|not|neither|nothing|none)\b"
    r"|(?:\b(?:to|will|would|shall|should|must|(?-i:may)|might|can|could|cannot|not|never|nor)|n['\u2019]t)\s+(?:\w+\s+){0,2}\Z",
    re.IGNORECASE,
)
_ANOTHER = re.compile(
    r"\W*(?:(?:and|but)\s+)?(?:(?:the|an?)\s+)?(?:another|second|third|other|next|later|latter|last|one)\W*", re.IGNORECASE
)
_SEVERAL = re.compile(
    r"(?<!\bboth\s)(?<!\ball\s)(?<!\ball\sthe\s)\b(?:runs|records|sessions|benchmarks|executions)\b"
    r"|\b(?:each|every|per)\s+(?:\w+\s+)?(?:run|record|session|benchmark)\b|\beach\s+cover|\brespectively\b|\brun\s+of\s+its\s+own\b",
    re.IGNORECASE,
)
_SAME = re.compile(r".*\bit\b\W*(?:also\W+)?|(?:\W|\b(?:and|also|then|still|has|had|which|that|they|this)\b)*", re.IGNORECASE | re.DOTALL)
_IT = re.compile(
    r"\W*(?:it|they|(?:this|that)\s+(?:is|was|took|ran|run|covers?)|cover\w*)\b|.*\bit\s+(?:also\s+)?cover", re.IGNORECASE | re.DOTALL
)
_NUMBERED = re.compile(rf"(?:{_RUN.pattern}|{_JOB.pattern})\W{{1,4}}(?P<number>\w*\d\w*)", re.IGNORECASE)
_TOLD = re.compile(r"\b(?!(?:also|both|only|now|then|and|by|has|have|is|was|been|it|this|that|they|these|the|same)\b)[\w-]+")
_INDEFINITE = re.compile(r"\b(?:an?|one|another|each|every|some|second|third|other|next|later|latter|last)\b")
_ON_A_RUN = re.compile(rf"\W*(?:[\w-]+\s+){{0,3}}(?:{_RUN.pattern})", re.IGNORECASE)


@dataclass(frozen=True)
class Clause:
    """What a part of a sentence says of one run, or of several together.

    Attributes:
        names: what it covers, with places in the sentence; none where a list follows.
        words: the part.
        run: words that tell the run, "#" before a number; none where it is the one of which something was said before.
    """

    names: tuple[Named, ...]
    words: str
    run: str

    @property
    def alone(self) -> bool:
        """Whether the same words again are another run, as "a run"."""
        return _INDEFINITE.search(self.run) is not None


def speaks_of_a_run(text: str) -> bool:
    """Whether words name a run, or what else is evidence."""
    return _RUN.search(_RUNNING.sub("", text)) is not None


def speaks_of_several(text: str) -> bool:
    """Whether words speak of more runs than one, each of which may have covered something else."""
    return _SEVERAL.search(text) is not None


def is_on_a_run(text: str) -> bool:
    """Whether a sentence or heading begins with a run, so that what follows may say "it"."""
    return _ON_A_RUN.match(_RUNNING.sub("", text)) is not None


def refers(text: str) -> bool:
    """Whether a sentence speaks of what was told before it."""
    return _IT.match(text) is not None


def is_key(text: str) -> bool:
    """Whether words are no more than a key such as "commits covered"."""
    return _KEY.fullmatch(text) is not None


def enumerated(text: str, begin: int = 0) -> list[Named]:
    """The names in the enumeration that begins at a place of a text."""
    return _names(text, begin, _end(text, begin))


def is_enumeration(text: str) -> bool:
    """Whether a text names commits and says nothing else."""
    return bool(enumerated(text)) and not text[_end(text, 0) :].strip(" .:)\r\n")


def made_at(text: str) -> list[Named]:
    """The commits at which words say that something was made."""
    return [name for made in _MADE.finditer(text) for name in enumerated(text, made.end())[:1]]


def clauses(sentence: str, before: str = "", said: bool = False, heading: str = "") -> Iterator[Clause]:
    """The parts of a sentence that say what a run covers.

    Args:
        sentence: it.
        before: what stands before it and tells what "it" is.
        said: whether that says what a run covers, so that names alone are more of it.
        heading: of the section; it tells whose "covers: A" is.
    """
    if sentence.rstrip(" *_`").endswith("?"):
        return
    if said and is_enumeration(sentence):
        yield Clause(tuple(enumerated(sentence)), sentence, "")
    begin = 0
    for verb in COVERS.finditer(sentence):
        part = sentence[begin : verb.start()]
        names, who, end = _passive(sentence, begin, verb) or _active(sentence, begin, verb)
        evidence = speaks_of_a_run(who) or (_JOB.search(who) and _COMMITS.search(sentence)) or (said and _ANOTHER.fullmatch(who))
        key = is_key(sentence[: verb.end()]) and (is_on_a_run(before) or is_on_a_run(heading) or speaks_of_a_run(sentence[verb.end() :]))
        same = key or (_SAME.fullmatch(who) and (said or is_on_a_run(before)))
        if (evidence or same) and not _OTHERS.search(who) and not _UNSAID.search(part) and not _UNSAID.search(f"{who} "):
            said = True
            words = sentence[begin : max([end, *(place for place, _ in names)])]
            yield Clause(tuple(names), words, "" if key else _run(who))
        begin = end


def _passive(sentence: str, begin: int, verb: re.Match[str]) -> tuple[list[Named], str, int] | None:
    """Names, run and end of "A is covered by it", "covered by it are A", "so is A"."""
    be, by = _BE.search(sentence, begin, verb.start()), _BY.match(sentence, verb.end())
    if verb[0].lower() != "covered" or not (be or by):
        return None
    names: list[Named] = []
    if be:
        found = [part for part in _ENUMERATION.finditer(sentence, begin, be.start()) if part.end() == be.start() and part[0]]
        names = _names(sentence, found[0].start(), found[0].end()) if found else []
    end = by.end() if by else verb.end()
    more = by if by and by["are"] and not be else _SO.match(sentence, end)
    if more:
        names += enumerated(sentence, more.end())
        end = max(end, _end(sentence, more.end()))
    return names, by["who"] if by else "", end


def _active(sentence: str, begin: int, verb: re.Match[str]) -> tuple[list[Named], str, int]:
    """Names, run and end of "it covers A"; what it was made at, too."""
    start = max((cut.end() for cut in _BEGINS.finditer(sentence, begin, verb.start())), default=begin)
    who = sentence[start : verb.start()]
    after = verb.end() + (sentence[verb.end() : verb.end() + 1] == ":")
    names = enumerated(sentence, after)
    made = [(begin + place, name) for place, name in made_at(sentence[begin : verb.start()])] if names else []
    return made + names, who, _end(sentence, after) if names else after


def _end(text: str, begin: int) -> int:
    found = _ENUMERATION.match(text, begin)
    end = found.end() if found else begin
    clause = _CLAUSE.search(text, begin, end + 16)  # a word more
    return min(end, clause.start()) if clause and _NAME.search(text, begin, clause.start()) else end


def _names(text: str, begin: int, end: int) -> list[Named]:
    return [(begin + name.start(), name[0]) for name in _NAME.finditer(_BESIDE.sub(blank, text[begin:end]))]


def _run(who: str) -> str:
    numbered = _NUMBERED.search(who)
    if numbered:
        return "#" + " ".join(re.findall(r"\w+", numbered[0].lower()))
    return "" if _SAME.fullmatch(who) else " ".join(_TOLD.findall(who.lower()))
