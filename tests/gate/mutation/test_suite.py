"""Which of a project's files are read for what they promise."""

from __future__ import annotations

from pathlib import Path

from gate.mutation.suite import Suite


def test_documents_beside_the_configuration_are_read(tmp_path: Path) -> None:
    """In every form that claims are looked for in; lists of packages are none, nor is what lies in a folder."""
    documents = ("README.MD", "GUIDE.markdown", "NOTES.txt", "INDEX.rst")
    others = ("requirements.txt", "step.py", "docs/page.md")
    for name in (*documents, *others):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name, encoding="utf-8")
    assert Suite.of(tmp_path, (*documents, *others)).documents() == {name: name for name in documents}
