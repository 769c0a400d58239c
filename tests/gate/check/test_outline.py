"""When the lines of a file run: at import, in which function, or never."""

from __future__ import annotations

import pytest

from gate.check.outline import Outline

SOURCE = '''"""A module."""

import os  # for its name
LIMIT = {
    "a": 1,
}


@decorated(
    by=LIMIT,
)
class Model(Base):
    """A class."""

    size = 3

    @property
    def area(self, scale=LIMIT,
             offset=0):
        """Documentation."""
        # a comment
        if self.size:
            return (self.size
                    * scale)
        else:
            for side in range(3):
                pass

        def inner():
            return 1

        return inner()


def short(): return 1
'''


def outline(source: str) -> Outline:
    found = Outline.of(source)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("line", "statement", "owner"),
    [
        (1, None, None),  # documentation
        (3, range(3, 4), None),
        (5, range(4, 7), None),
        (10, range(9, 13), None),
        (13, None, None),
        (15, range(15, 16), None),
        (18, range(17, 20), None),  # the head, decorators and defaults, runs at import
        (20, None, None),
        (21, None, None),
        (22, range(22, 23), "Model.area"),
        (24, range(23, 25), "Model.area"),
        (25, range(26, 27), "Model.area"),  # a line with nothing but `else:` counts to what follows
        (29, range(29, 30), "Model.area"),
        (30, range(30, 31), "Model.area.inner"),
        (32, range(32, 33), "Model.area"),
        (35, range(35, 36), None),
    ],
)
def test_a_line_belongs_to_a_statement_and_to_who_runs_it(line: int, statement: range | None, owner: str | None) -> None:
    found = outline(SOURCE)
    owning = found.owner(line)
    assert found.statement(line) == statement
    assert (owning.name if owning else None) == owner


def test_comments_blanks_and_documentation_make_no_other_file() -> None:
    """And a number does."""
    plain = outline(SOURCE)
    assert plain.same(outline(SOURCE.replace("# a comment", "# another").replace('"""A class."""', '"""Another."""\n')))
    assert not plain.same(outline(SOURCE.replace("size = 3", "size = 4")))


@pytest.mark.parametrize("use", ["import click", "from argparse import ArgumentParser", "print(f.__doc__)"])
def test_documentation_that_is_printed_is_code(use: str) -> None:
    source = f'{use}\n\n\ndef f():\n    """Text."""\n'
    assert not outline(source).same(outline(source.replace("Text", "Other")))
    quiet = source.replace(use, "import os")
    assert outline(quiet).same(outline(quiet.replace("Text", "Other")))


def test_every_kind_of_statement_has_its_lines() -> None:
    """Those that a coverage of lines would name: none of them is left without an owner."""
    source = (
        "def f(x):\n    try:\n        pass\n    except ValueError as e:\n        pass\n    finally:\n        pass\n"
        "    with x as y, \\\n            x as z:\n        pass\n"
        "    while x:\n        pass\n    match x:\n        case 1:\n            pass\n"
    )
    found = outline(source)
    assert [line for line in range(2, 16) if found.owner(line) is None] == []
    assert found.statement(9) == range(8, 10)
    assert found.statement(14) == range(14, 15)


@pytest.mark.parametrize("source", ["def broken(\n", "x = '\0'\n"])
def test_what_does_not_parse_has_no_outline(source: str) -> None:
    assert Outline.of(source) is None
