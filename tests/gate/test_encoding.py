"""Sources are read as Python reads them, in every part that reads some; what Python cannot read is told by its file and line."""

from __future__ import annotations

import codecs
from functools import partial
from pathlib import Path

import pytest

from gate import encoding, script
from gate.check.outline import Outline
from gate.check.parts import text
from gate.claims import review
from gate.collected import Answer, Collected
from gate.errors import UsageError
from gate.mutation.catalogue import OPERATORS
from gate.mutation.copies import Copy
from gate.mutation.plant import plant
from gate.mutation.suite import Suite
from gate.pytest_settings import text_of
from tests.gate.mutation.tiny import Tiny

PLAIN = "import os\n\n\ndef test_a():\n    assert 'é表'\n"
FORMS = {
    "mark": codecs.BOM_UTF8 + PLAIN.encode(),
    "latin-1": b"# -*- coding: latin-1 -*-\n" + PLAIN.replace("表", "").encode("latin-1"),
    "shift_jis": b"# coding: shift_jis\n" + PLAIN.replace("é", "").encode("shift_jis"),  # its second byte is a backslash
    "plain": PLAIN.encode(),
}
WRONG = {
    "not in its encoding": (b"x = 1\ny = '\xe9'\n", 2),
    "unknown encoding": (b"# coding: nosuch\nx = 1\n", 1),
    "null": (b"x = 1\ny = 2\0\n", 2),
    "no Python": (b"x = 1\ny = =\n", 2),
    "too long": (b"x = 1\ny = " + b" + ".join([b"1"] * 5000) + b"\nz = 1\n", 2),
    "too deep": (b"x = 1\ny = 2\nz = " + b"-" * 8000 + b"1\n", 3),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_part_reads_what_python_reads(form: str, tmp_path: Path) -> None:
    content = FORMS[form]
    compile(content, "a", "exec")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_bom.py").write_bytes(content)
    assert Collected(partial(text_of, tmp_path)).answer("tests/test_bom.py", "test_a") is Answer.TEST
    assert Suite.of(tmp_path, ["tests/test_bom.py"]).imported("tests/test_bom.py") == {"os"}
    outline = Outline.of(text(content))
    assert outline is not None
    assert outline.function("test_a") is not None
    assert "test_a" in encoding.mutable(tmp_path, "tests/test_bom.py")


@pytest.mark.parametrize("form", FORMS)
def test_a_mutant_is_written_in_the_encoding_of_its_file(form: str, tmp_path: Path) -> None:
    """A text that stays what it is gives the very bytes."""
    (tmp_path / "a.py").write_bytes(FORMS[form])
    copy = Copy.make(tmp_path, ["a.py"], tmp_path / "copy")
    source = encoding.mutable(tmp_path, "a.py")
    copy.write("a.py", source)
    assert (copy.tree / "a.py").read_bytes() == FORMS[form]
    copy.write("a.py", source.replace("assert", "assert not"))
    assert (copy.tree / "a.py").read_bytes() == FORMS[form].replace(b"assert", b"assert not")


@pytest.mark.parametrize("wrong", WRONG)
def test_what_python_cannot_read_is_told_by_file_and_line(wrong: str, tmp_path: Path) -> None:
    content, line = WRONG[wrong]
    with pytest.raises((SyntaxError, ValueError, RecursionError, MemoryError)):
        compile(content, "a", "exec")
    (tmp_path / "gen.py").write_bytes(content)
    with pytest.raises(UsageError, match=rf"^gen\.py:{line}: does not parse: "):
        encoding.mutable(tmp_path, "gen.py")
    if wrong != "unknown encoding":  # a text has none
        with pytest.raises(UsageError, match=rf"^gen\.py:{line}: does not parse: "):
            list(review._of_source("gen.py", encoding.text(content), True, []))
    assert Outline.of(text(content)) is None or wrong == "unknown encoding"
    assert Collected(partial(text_of, tmp_path)).answer("gen.py", "test_a") is Answer.NONE
    assert not script.scenarios(tmp_path / "gen.py")


def test_a_chain_of_conditions_that_python_can_compile_is_told() -> None:
    chain = "".join(f"    elif x == {number}:\n        return {number}\n" for number in range(1, 800))
    source = f"def g(x):\n    if x == 0:\n        return 0\n{chain}"
    compile(source, "a", "exec")
    with pytest.raises(UsageError, match=r"^a\.py:1600: is nested too deeply"):
        plant("a.py", source, OPERATORS)
    assert Outline.of(source) is None
    assert Outline.of(source.replace("elif", "if")) is not None


def test_what_python_can_compile_and_nobody_can_plant_faults_in_is_told() -> None:
    source = "def f(x):\n    return 0\n\n\ndef g(x):\n    return " + " + ".join(["x"] * 1500) + "\n"
    compile(source, "a", "exec")
    with pytest.raises(UsageError, match=r"^a\.py:6: is nested too deeply"):
        plant("a.py", source, OPERATORS)
    assert plant("a.py", source.replace(" + x" * 1490, ""), OPERATORS)
    outline = Outline.of(source)
    assert outline is not None
    assert not outline.same(outline)  # nobody can tell, and so it counts as changed


def test_mutants_of_marked_and_of_latin_sources_are_judged(tmp_path: Path) -> None:
    tiny = Tiny.new(tmp_path / "tiny", "", "import a, b\n\n\ndef test_both():\n    assert a.f(2) == 'é4' and b.f(2) == 'é4'\n")
    (tiny.folder / "src/shop.py").unlink()
    body = "def f(x):\n    return 'é' + str(2 * x)\n"
    (tiny.folder / "src/a.py").write_bytes(codecs.BOM_UTF8 + body.encode())
    (tiny.folder / "src/b.py").write_bytes(b"# coding: latin-1\n" + body.encode("latin-1"))
    tiny.commit()
    answer = tiny.mutate()
    assert (answer.code, {mutant["file"] for mutant in answer.document["mutants"]}) == (0, {"src/a.py", "src/b.py"})
    assert {mutant["status"] for mutant in answer.document["mutants"]} == {"killed"}
