"""The log of provenance is read in each form that Markdown gives a table, and what only looks like a row is named."""

from __future__ import annotations

import pytest

from gate.trailers.log import entries, wrong

DAY = "# Log\n\n## 2020-01-01\n\n"
TABLE = f"{DAY}| id | source | for |\n| --- | --- | --- |\n| P1 | A book | all |\n"


def told(text: str) -> list[tuple[int, str]]:
    return list(wrong(text, {}))


def read(text: str) -> list[tuple[str, str]]:
    return [(entry.id, entry.source) for entry in entries(text)]


@pytest.mark.parametrize(
    "row",
    [
        "| P2 | {} | again |", " | P2 | {} | again |", "   | P2 | {} | again |", "| P2 | {} | again", "P2 | {} | again |",
        "P2 | {} | again", "|P2|{}|", "| P2 | {} |\t", "P2|{}", "| P2 | {} | a \\| b |", "| P2 | {} | again |\r",
    ],
)  # fmt: skip
def test_a_row_is_one_in_each_form_of_markdown(row: str) -> None:
    """A second time is found; another source is none."""
    again, other = (f"{TABLE}{row.format(source)}\n" for source in ("A book", "Another"))
    assert read(again) == [("P1", "A book"), ("P2", "A book")]
    assert [line for line, text in told(again) if "stands already, as P1" in text] == [8]
    assert told(other) == []


@pytest.mark.parametrize(
    "table",
    [
        "id | source\n--- | ---\nP1 | A book\nP2 | Another\n", " |id|source\n  :-|-:\n P1|A book\n   P2|Another|\n",
        "| id | source\n| :---: | ---\n| P1 | A book\n| P2 | Another |",
        "The sources:\n| id | source |\n|-|-|\n| P1 | A book |\n\n| id | source |\n|-|-|\n| P2 | Another |\n",
    ],
)  # fmt: skip
def test_a_table_is_one_in_each_form_of_markdown(table: str) -> None:
    assert read(DAY + table) == [("P1", "A book"), ("P2", "Another")]
    assert told(DAY + table) == []


def test_a_bar_may_stand_in_a_cell() -> None:
    text = f"{TABLE}| P2 | The `a\\|b` of | more |\n"
    assert read(text)[1] == ("P2", "The `a|b` of")
    assert told(text) == []
    again = f"{text}| P3 | The `a\\|c` of | more |\n| P4 | The a\\|c of | more |\n"
    assert [line for line, _ in told(again)] == [10]


@pytest.mark.parametrize(
    "hidden",
    ["<!--\n{}\n-->\n", "```\n{}\n```\n", "~~~ text\n{}\n~~~\n", "<!-- {} -->\n", "An example:\n\n- one:\n\n  ```\n  {}\n  ```\n"],
)
def test_what_stands_in_comments_and_code_counts_for_nothing(hidden: str) -> None:
    """Neither as an entry nor as what looks like one; the same row in the open does."""
    row = "| P1 | A book | all |"
    assert read(f"{TABLE}\n{hidden.format(row)}") == [("P1", "A book")]
    assert told(f"{TABLE}\n{hidden.format(row)}") == []
    assert told(TABLE + row)
    assert told(f"{TABLE}\n{row}\n") == [(9, told(f"{TABLE}\n{row}\n")[0][1])]


@pytest.mark.parametrize(
    "line",
    [
        "- P2: A book", "* P2 A book", "1. P2: A book", "  - **P2**: A book", "> | P2 | A book |", "| P2 | A book |", "P2 | A book",
        "P2: A book", "**P2** - A book", "`P2`: A book", "### P2 A book", "## P2: A book", "- [P2] A book", "[P2]: https://example.org/",
        "P2 \u2013 A book", "P2. A book", "<tr><td>P2</td><td>A book</td></tr>", "- [ ] P2: A book",
        "+ P2", "| **P2** | A book |", "Q2: A book",
    ],
)  # fmt: skip
def test_what_looks_like_an_entry_and_is_none_is_named(line: str) -> None:
    text = TABLE.replace("| P1", "| Q1 | Some | all |\n| P1")
    ((number, found),) = told(f"{text}\n{line}\n")
    assert number == 10
    assert found.startswith(f"{'Q' if line[0] == 'Q' else 'P'}2 looks like an entry, and is no row of a table")


@pytest.mark.parametrize(
    "note",
    [
        "Notes:\n\n- {} was read on paper, chapter 4 alone.", "{} - read by Ann.", "- {} is the oldest.", "{}: the second edition.",
        "### {}", "1. {}: see chapter 2", "[{}]: https://example.org/", "<p>{} was read twice.</p>",
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", [TABLE + "\n{}\n", TABLE.replace("| id", "{}\n\n| id")], ids=["below", "above"])
def test_an_id_that_has_a_row_may_begin_a_note(note: str, form: str) -> None:
    """One that has none looks like an entry in the same place, and so does a second row below a gap."""
    assert told(form.format(note.format("P1"))) == []
    ((_, found),) = told(form.format(note.format("P2")))
    assert found.startswith("P2 looks like an entry")
    assert [line for line, _ in told(f"{TABLE}\n| P1 | Another book | all |\n")] == [9]


def test_a_row_above_the_dashes_or_below_a_gap_is_named() -> None:
    assert [line for line, _ in told(f"{DAY}| P1 | A book |\n| --- | --- |\n| P2 | Another |\n")] == [5]
    assert [line for line, _ in told(f"{TABLE}- a list\n| P2 | Another | more |\n")] == [9]
    assert [line for line, _ in told(f"{TABLE}    | P2 | Another | more |\n")] == [8]
    assert [line for line, _ in told(f"{DAY}| id | source |\n| --- |\n| P2 | Another |\n")] == [7]


@pytest.mark.parametrize(
    "text",
    [
        "Of these P1 is the first.", "P1 and P2 were read twice,\nP1 later.", "- The manual (P1)", "- python3: not a source",
        "See\nP1, the book.", "- P: a letter",
        "UTF8: a code", "Rows begin with an id, such as P1: so they do.",
        "| word | what it means |\n| --- | --- |\n",
    ],
)  # fmt: skip
def test_prose_that_speaks_of_an_entry_is_none(text: str) -> None:
    assert told(f"{TABLE}\n{text}\n") == []


@pytest.mark.parametrize("heading", ["## How to use", "## References", "How to use\n----------"])
def test_a_heading_without_rows_need_be_no_day(heading: str) -> None:
    """With rows it has to be one."""
    assert told(f"{TABLE}\n{heading}\n\nSome words.\n") == []
    assert told(TABLE.replace("## 2020-01-01", f"{heading}\n\n## 2020-01-01")) == []
    ((line, found),) = told(TABLE.replace("## 2020-01-01", heading))
    assert (line, "is no day" in found) == (3, True)


@pytest.mark.parametrize("heading", ["  ## 2019-12-31", "## 2019-12-31 ##", "2019-12-31\n----------"])
def test_a_day_is_one_in_each_form_of_markdown(heading: str) -> None:
    text = TABLE + f"\n{heading}\n\nid | source\n-|-\nP2 | Another\n"
    assert [(entry.id, entry.day) for entry in entries(text)] == [("P1", "2020-01-01"), ("P2", "2019-12-31")]
    assert [(line, "stands after 2020-01-01" in found) for line, found in told(text)] == [(9, True)]
    assert told(text.replace("2019", "2020")) == []
