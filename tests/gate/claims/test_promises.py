"""A sentence that promises something names a test that exists, ran, and would notice a broken promise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from gate.claims.docstrings import docstrings
from gate.claims.holding import judged
from gate.claims.issue import Weight
from gate.claims.promises import Promise, misplaced, misspelt_in_document, misspelt_in_source, of_document, of_source, untold
from gate.collected import Collected
from gate.evidence.required import Need
from tests.gate.claims.code_samples import READ, UNREAD

SOURCE = '''"""Updates of weights. Nothing here is bit-identical with anything.

A line that promises nothing.
"""


class Optimizer:
    """Steps.

    Gradients are never written. [held by tests/test_x.py::test_read, tests/test_x.py::TestA::test_b[1-2]]

    Args:
        lr: always positive.

    Raises:
        ValueError: where lr is negative.
    """

    def step(self):
        """Restores momenta [held by tests/test_x.py::test_read]. Says `never` and "whenever" alone."""
        self.momenta = 1

    def _hidden(self):
        """Never seen."""


def plain():
    """Adds."""
'''
TESTS = Collected({"tests/test_x.py": "def test_read(): pass\nclass TestA:\n    def test_b(self): pass\n"}.get)


def test_sentences_that_promise_are_found_with_their_lines() -> None:
    """Of public names alone; headings, code and words that only contain one do not count."""
    found = {promise.line: (promise.function, promise.tests) for promise in of_source("src/toy.py", SOURCE)}
    held = ("tests/test_x.py::test_read", "tests/test_x.py::TestA::test_b[1-2]")
    assert found == {
        1: ("src/toy.py::", ()),
        10: ("src/toy.py::Optimizer", held),
        13: ("src/toy.py::Optimizer", ()),
        20: ("src/toy.py::Optimizer.step", ("tests/test_x.py::test_read",)),
    }


def test_documents_promise_where_they_name_a_test() -> None:
    """Other prose may say never."""
    text = "# Toy\n\nIt never fails. It never moves a bit [held by tests/test_x.py::test_read]. `[held by tests/a.py::b]` is the form.\n"
    (promise,) = of_document("README.md", text)
    assert (promise.line, promise.function, promise.tests) == (3, None, ("tests/test_x.py::test_read",))


def test_the_line_is_that_of_the_promise() -> None:
    """Neither a heading nor the words before it; of a sentence that promises with other words, that of its tag."""
    text = "# Toy\nIt is small and\nnever fails [held by tests/a.py::b,\ntests/a.py::c]. Under\n-----\n"
    text += "It always ends [held by tests/a.py::d].\n\nIt is\nas it was [held by tests/a.py::e].\n"
    found = [(promise.line, promise.tests) for promise in of_document("README.md", text)]
    assert found == [(3, ("tests/a.py::b", "tests/a.py::c")), (6, ("tests/a.py::d",)), (9, ("tests/a.py::e",))]


@pytest.mark.parametrize(
    "tag",
    [
        "[held by tests/x.py::test_it]", "[held by\ntests/x.py::test_it]", "[held by tests/x.py::\ntest_it]",
        "[held\nby tests/x.py::test_it]",
        "[held by `tests/x.py::test_it`]", "[held by tests/x.py::test\\_it]", "[held by `tests/x.py`::`test_it`\n]",
    ],
)  # fmt: skip
def test_a_tag_goes_on_over_a_line_and_in_code(tag: str) -> None:
    (promise,) = of_document("README.md", f"It never fails {tag}. More.\n")
    assert (promise.tests, promise.line) == (("tests/x.py::test_it",), 1)
    (quoted,) = of_document("README.md", f"> It never fails {tag}.\n".replace("\n", "\n> ").removesuffix("> "))
    assert quoted.tests == ("tests/x.py::test_it",)
    assert list(misspelt_in_document("README.md", tag)) == []


def test_parameters_may_hold_commas_and_blanks() -> None:
    (promise,) = of_document("README.md", "Never [held by tests/x.py::a[1, 2-b c],tests/x.py::d].")
    assert promise.tests == ("tests/x.py::a[1, 2-b c]", "tests/x.py::d")


@pytest.mark.parametrize(
    "text",
    [
        "[Held by tests/x.py::a]", "[held by: tests/x.py::a]", "(held by tests/x.py::a)", "(held by\n`tests/x.py::a`)",
        "[held-by tests/x.py::a]",
        "[heldby tests/x.py::a]", "[hold by tests/x.py::a]", "{held by tests/x.py::a}", "[held by tests/x.py::a",
        "[held by tests/x.py::a\n\n]",
        "[is held by tests/x.py::a]", "It is held by `tests/x.py::a`.", "[held by ]", "[HELD BY tests/x.py::a]",
    ],
)  # fmt: skip
def test_what_was_meant_to_be_a_tag_is_named(text: str) -> None:
    """Or taken for one whose test does not exist."""
    found = list(misspelt_in_document("README.md", f"# Toy\n\nIt never fails {text}\n"))
    nothing: Any = Evidence()
    for promise in of_document("README.md", f"\n\nIt never fails {text}\n"):
        found += judged(promise, TESTS.answer, nothing)
    assert [(issue.weight.value, issue.line) for issue in found] == [("claim", 3)]
    assert "[held by tests/test_x.py::test_it]" in found[0].message


@pytest.mark.parametrize(
    "text", ["`[Held by tests/x.py::a]`", "(held by Fort Knox)", "[held by the crown](https://example.org)", "upheld by all"]
)
def test_other_prose_is_no_tag(text: str) -> None:
    assert list(misspelt_in_document("README.md", text)) == []
    assert list(of_document("README.md", text)) == []


HELD = "It never fails [held by tests/x.py::a]."


@pytest.mark.parametrize("tag", [HELD, HELD.replace("held", "Held")])
@pytest.mark.parametrize(("page", "read"), [*((page, 0) for page in UNREAD), *((page, 1) for page in READ)])
def test_code_and_comments_hold_no_tags(page: str, read: int, tag: str) -> None:
    """Nor ones that are misspelt; what merely is indented, in a list or a paragraph, does."""
    text = page.format(tag)
    assert len([*of_document("README.md", text), *misspelt_in_document("README.md", text)]) == read


@pytest.mark.parametrize("link", ["[held by x][1]", "[held by x][]", "[held by x](x.html)", "[held by x]: x.html"])
def test_links_are_no_tags(link: str) -> None:
    """But for one that names a test, which is both."""
    assert [*of_document("README.md", f"It never fails. See {link}"), *misspelt_in_document("README.md", link)] == []
    (promise,) = of_document("README.md", f"It never fails {link.replace('x]', 'tests/x.py::a]')}")
    assert promise.tests == ("tests/x.py::a",)


def test_a_docstring_s_indented_paragraphs_are_prose() -> None:
    """They are indented as far as the code is, and its sections further."""
    source = f'def f():\n    """Adds.\n\n    {HELD}\n\n    Args:\n        x: one.\n\n        {HELD}\n    """\n'
    assert [promise.line for promise in of_source("toy.py", source)] == [4, 9]
    assert [issue.line for issue in misspelt_in_source("toy.py", source.replace("held", "Held"))] == [4, 9]


@pytest.mark.parametrize(
    "section",
    [
        "Raises:\n        ValueError: If x is 0.", "Raises\n    ------\n    ValueError\n        If x is 0.",
        ":raises ValueError: If x is 0.",
        ":raises: If x is 0.", "@raises ValueError: If x is 0.",
    ],
)  # fmt: skip
def test_what_a_function_raises_is_described_in_any_form(section: str) -> None:
    """Google's, NumPy's, Sphinx's, Epytext's. An entry that promises needs a tag all the same, and is held by it."""
    source = f'def f(x):\n    """Halves.\n\n    {section}\n    """\n'
    assert list(of_source("toy.py", source)) == []
    (promise,) = of_source("toy.py", source.replace("If x is 0", "Always if x is 0"))
    assert promise.line == 4 + section.count("\n")
    assert promise.tests == ()
    (held,) = of_source("toy.py", source.replace("If x is 0", f"Always if x is 0 {TAG}"))
    assert held.tests == ("tests/x.py::a",)


def test_a_sentence_that_begins_with_raises_promises() -> None:
    assert len(list(of_source("toy.py", 'def f(x):\n    """Halves. Raises ValueError if x is 0."""\n'))) == 1
    assert len(list(of_source("toy.py", 'def f(x):\n    """Halves.\n\n    Raises\n    what is low.\n    """\n'))) == 1


TAG = "[held by tests/x.py::a]"
ASIDE = {
    "_f": f'def _f():\n    """Never {TAG}."""\n    return 1\n',
    "_A.g": f'class _A:\n    def g(self):\n        """Never {TAG}."""\n        return 1\n',
    "f.inner": f'def f():\n    def inner():\n        """Never {TAG}."""\n        return 1\n    return inner\n',
    "A": f'class A:\n    x = 1\n    """Never {TAG}."""\n',
    "": f'x = 1\n"""Never {TAG}."""\n',
}


@pytest.mark.parametrize("owner", ASIDE)
def test_a_tag_is_a_claim_wherever_it_stands(owner: str) -> None:
    """In a private name, in a function within another, below an attribute; without a tag nobody has to promise there."""
    (promise,) = of_source("toy.py", ASIDE[owner])
    assert (promise.function, promise.tests) == (f"toy.py::{owner}", ("tests/x.py::a",))
    assert list(of_source("toy.py", ASIDE[owner].replace(f" {TAG}", ""))) == []
    assert len(list(misspelt_in_source("toy.py", ASIDE[owner].replace("[held", "[Held")))) == 1


@pytest.mark.parametrize(("name", "weight"), [("__exit__", Weight.WARNING), ("__call__", Weight.WARNING), ("close", Weight.CLAIM)])
def test_methods_that_python_calls_are_public(name: str, weight: Weight) -> None:
    """A sentence of theirs that names nobody is warned of; `_close` may say what it likes."""
    source = f'class A:\n    def {name}(self):\n        """Always ends."""\n        return 1\n'
    (promise,) = of_source("toy.py", source)
    assert (promise.function, untold(promise).weight) == (f"toy.py::A.{name}", weight)
    assert list(of_source("toy.py", source.replace(name, f"_{name.strip('_')}"))) == []


def twins(second: str, first: str = "def v(x):", body: str = "return 2") -> list[tuple[int, bool]]:
    source = f'{first}\n    """Never odd {TAG}."""\n    {body}\n\n\n{second}\n    """Never holds an odd number {TAG}."""\n    return 1\n'
    return [(promise.line, promise.twin) for promise in of_source("toy.py", source)]


@pytest.mark.parametrize("mark", ["@v.setter", "@v.deleter", "@f.register", "@other"])
def test_a_promise_is_not_held_by_a_test_of_what_has_the_same_name(mark: str) -> None:
    """As a setter has its getter's, in the evidence too. What has no code above it, or another name, is alone with it."""
    assert twins(f"{mark}\ndef v(x, y):") == [(2, False), (8, True)]
    assert twins(f"{mark}\ndef w(x, y):") == [(2, False), (8, False)]
    assert twins(f"{mark}\ndef v(x, y):", "@overload\ndef v(x):", "...") == [(3, False), (9, False)]
    ((_, second),) = [
        (one.line, one) for one in of_source("toy.py", f'def v():\n    return 1\n\ndef v():\n    """Never {TAG}."""\n    x()\n')
    ]
    assert "under a name that stands above too, v," in misplaced(second).message


@pytest.mark.parametrize(
    ("source", "function"),
    [
        ('class TooLate(Exception):\n    """{0}"""\n', None),
        ('class TooLate(Exception):\n    """{0}"""\nx = 1\n', "toy.py::"),
        ('class A:\n    def f(self):\n        """{0}"""\n        ...\n    def g(self):\n        return 1\n', "toy.py::A"),
        ('class A:\n    """{0}"""\n    x: int\n    def g(self):\n        return 1\n', "toy.py::A"),
    ],
)
def test_what_holds_no_code_promises_for_what_encloses_it(source: str, function: str | None) -> None:
    """No fault can be planted in an exception that is but a name: no test could hold what it says."""
    (promise,) = of_source("toy.py", source.format(f"Never {TAG}."))
    assert promise.function == function


HEADS = ["for a in b", "while a", "with a as b", "if a"]


def test_docstrings_below_conditions_are_public_too() -> None:
    source = 'try:\n    import x\nexcept ImportError:\n    def f():\n        """Never."""\n'
    source += 'if x:\n    pass\nelse:\n    class A:\n        """A."""\n'
    source += "".join(f'{head}:\n    def g{place}():\n        """Never."""\n' for place, head in enumerate(HEADS))
    source += 'match x:\n    case 1:\n        class B:\n            """B."""\n'
    found = [(one.owner, one.line) for one in docstrings(source) if one.public]
    assert found == [("f", 5), ("A", 10), *((f"g{place}", 13 + 3 * place) for place in range(len(HEADS))), ("B", 26)]


@dataclass
class Evidence:
    """What the records say: of tests and mutants on a CPU, all of them unless `partial` names the check."""

    passed: Any = None
    killers: Any = None
    named: Any = frozenset()
    partial: tuple[str, ...] = ()
    hardware: str = "cpu"
    missing: tuple[str, ...] = field(default=())

    def whole(self, check: str, need: Need | None = None) -> bool:
        return check not in self.partial and (need is None or need.hardware not in self.missing)

    def asked(self, file: str | None) -> Mapping[str, frozenset[str]]:
        return {self.hardware: frozenset(self.named)} if file in (None, "src/toy.py") else {}


def said(
    function: str | None = "src/toy.py::Optimizer.step",
    test: str = "tests/test_x.py::test_read",
    needs: tuple[str, ...] = ("tests", "mutation"),
    paths: tuple[str, ...] = (),
    **evidence: Any,
) -> list[tuple[str, str]]:
    """What is wrong with a promise, given what there is of evidence."""
    usual: Mapping[str, Any] = {
        "passed": {"tests/test_x.py": frozenset({"test_read", "TestA::test_b[1-2]"})},
        "killers": {"src/toy.py::Optimizer.step": frozenset({test})},
        "named": frozenset({test}),
    }
    witnesses: Any = Evidence(**{**usual, **evidence})
    needed = [Need(check, hardware, paths=paths) for check in needs for hardware in ("cpu", "h200")]
    promise = Promise("src/toy.py", 7, "Never.", function, (test,))
    return [(issue.weight.value, issue.message) for issue in judged(promise, TESTS.answer, witnesses, needed)]


@pytest.mark.parametrize("function", ["src/toy.py::Optimizer.step", "src/toy.py::Optimizer", "src/toy.py::", None])
def test_a_promise_that_is_kept_is_fine(function: str | None) -> None:
    """Of a function, of its class, of its module, and of a document."""
    assert said(function) == []
    assert (
        said(function, "tests/test_x.py::TestA::test_b", killers={"src/toy.py::Optimizer.step": {"tests/test_x.py::TestA::test_b[1-2]"}})
        == []
    )


OTHER = {"src/toy.py::Optimizer.step": frozenset({"tests/z.py::other"})}
NEAR = {"src/toy.py::Optimizer.step": frozenset({"tests/z.py::other"}), "src/lib.py::f": frozenset({"tests/test_x.py::test_other"})}
UNASKED: dict[str, Any] = {"killers": NEAR, "named": ()}


@pytest.mark.parametrize(
    ("facts", "weight", "message"),
    [
        ({"test": "tests/test_x.py::test_gone"}, "claim", "which does not exist"),
        ({"test": "tests/test_y.py::test_read"}, "claim", "which does not exist"),
        ({"test": "tests/test_x.py"}, "claim", "which names no test"),
        ({"passed": {"tests/test_x.py": frozenset()}}, "claim", "did not pass in any fresh record"),
        ({"passed": {}, "partial": ("tests",)}, "inconclusive", "not all are fresh. Run gate check --all"),
        ({"passed": {}, "missing": ("h200",)}, "inconclusive", "not all are fresh"),
        ({"passed": None}, "inconclusive", "no fresh evidence that it ran. Run gate check --all"),
        ({"passed": None, "needs": ()}, "inconclusive", "Run gate check --all, and put tests into [tool.gate.required]"),
        ({"killers": None}, "inconclusive", "no fresh evidence of mutants that it could have killed. Run gate mutate src/toy.py"),
        (
            {"killers": None, "needs": ("tests",)},
            "inconclusive",
            "where tests/test_x.py imports nothing of it), and put mutation into [tool.gate.required]",
        ),
        ({"killers": None, "needs": ("tests",), "function": None}, "inconclusive", "Run gate mutate (with --all-tests"),
        ({"killers": OTHER}, "claim", "which kills no mutant of src/toy.py::Optimizer.step. Name a test that does"),
        ({"killers": OTHER, "hardware": "h200"}, "claim", "which kills no mutant of src/toy.py::Optimizer.step"),
        ({"killers": OTHER, "function": None}, "claim", "which kills no mutant of anything"),
        (
            {"killers": {}},
            "claim",
            "which kills no mutant of src/toy.py::Optimizer.step (no test kills any there: where there is no code for",
        ),
        ({"killers": {"src/toy.py::Optimizer.stepper": frozenset({"tests/test_x.py::test_read"})}}, "claim", "kills no mutant of"),
        ({"killers": OTHER, "partial": ("mutation",), "hardware": "h200"}, "inconclusive", "asked about no mutant of"),
        ({"killers": OTHER, "missing": ("cpu",), "hardware": "h200"}, "inconclusive", "asked about no mutant of"),
        (UNASKED, "not-judged", "asked about no mutant of src/toy.py::Optimizer.step. Ask it: gate mutate src/toy.py (with --all-tests"),
        ({**UNASKED, "function": None}, "not-judged", "asked about no mutant of anything. Ask it: gate mutate src/lib.py"),
        ({**UNASKED, "missing": ("h200",)}, "inconclusive", "asked about no mutant of"),
        (
            {"killers": OTHER, "function": "src/lib.py::f"},
            "not-judged",
            "no mutant of src/lib.py::f was killed by anything. Ask it: gate mutate",
        ),
    ],
)
def test_a_promise_that_nobody_holds_is_told(facts: dict[str, Any], weight: str, message: str) -> None:
    """What nobody asked about is not judged, and says what would ask; where the status tells that evidence lacks, it is inconclusive."""
    ((found, text),) = said(**facts)
    assert (found, message in text) == (weight, True), text


def test_a_source_that_no_merge_needs_mutants_of_is_told() -> None:
    """Else the command would have to be given again in every clone."""
    told = "A merge needs no mutants of src/toy.py: [tool.gate.required] paths"
    for paths, short in (((), True), (("src",), True), (("src/toy.py",), True), (("src/to",), False), (("src/lib.py",), False)):
        ((_, text),) = said(paths=paths, **UNASKED)
        assert (told not in text) == short


@pytest.mark.parametrize("missing", [("h200",), ("cpu", "h200"), ("cpu",)])
def test_what_evidence_a_promise_lacks_is_told(missing: tuple[str, ...]) -> None:
    """All of it: what may be missing excuses a promise only where nothing else is."""
    promise = Promise("src/toy.py", 7, "Never.", "src/toy.py::Optimizer.step", ("tests/test_x.py::test_read",))
    needs = [Need(check, hardware) for check in ("tests", "mutation") for hardware in ("cpu", "h200")]
    for evidence in (
        Evidence(passed={}, missing=missing),
        Evidence(passed={"tests/test_x.py": {"test_read"}}, killers=NEAR, missing=missing),
    ):
        witnesses: Any = evidence
        (issue,) = judged(promise, TESTS.answer, witnesses, needs)
        assert (issue.weight, issue.hardware) == (Weight.INCONCLUSIVE, missing)
