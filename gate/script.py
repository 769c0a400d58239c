"""Reads a training script without running it: its syntax tree tells how it trains."""

from __future__ import annotations

import ast
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from gate import encoding, training
from gate.errors import UsageError
from gate.training import Training, source

_HARMLESS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign, ast.Pass)
_SEARCHED = 200  # files that are read to find the one that trains
_APART = ("goldens", "tests", "test", "build", "dist", "node_modules", "__pycache__")


@dataclass(frozen=True)
class Script:
    """What is known of a script.

    Attributes:
        file: where it is.
        training: None where no function of it holds both an optimizer's step and the model.
        modules: its classes that are an nn.Module, by name, in their order.
        constructions: the calls that make an optimizer, as they stand there.
        importable: whether importing it only defines things, so that a scenario may do that.
    """

    file: Path
    training: Training | None
    modules: tuple[str, ...]
    constructions: tuple[str, ...]
    importable: bool


def read(file: Path) -> Script:
    """Reads a script.

    Raises:
        UsageError: it cannot be read, or is no Python.
    """
    try:
        tree = ast.parse(file.read_bytes(), str(file))
    except SyntaxError as error:
        raise UsageError(f"{file}: is no Python: line {error.lineno}: {error.msg}. Name a training script.") from None
    except (RecursionError, MemoryError):
        raise UsageError(f"{file}: {encoding.DEEP} for Python. Name a training script.") from None
    except ValueError as error:  # NUL bytes
        raise UsageError(f"{file}: is no Python: {error}. Name a training script.") from None
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}. Name a training script.") from None
    made = tuple(training.constructions(tree))
    return Script(file, training.find(tree, made), tuple(_modules(tree)), tuple(item.text for item in made), _importable(tree))


def trains(file: Path) -> bool:
    """Whether a file holds a training; no error where it cannot be read."""
    try:
        return read(file).training is not None
    except UsageError:
        return False


def scenarios(file: Path) -> tuple[str, ...]:
    """The functions of a scenario file, in their order: those whose first argument is `record`; none where it cannot be read."""
    try:
        tree = encoding.tree(file.read_bytes())
    except OSError:
        return ()
    functions = [node for node in (tree.body if tree else ()) if isinstance(node, ast.FunctionDef)]
    return tuple(node.name for node in functions if [argument.arg for argument in node.args.args][:1] == ["record"])


def only(root: Path) -> Script | None:
    """The only script of a project that trains, None where there is none."""
    found = [file for file in islice(_python_files(root), _SEARCHED) if trains(file)]
    if len(found) > 1:
        names = [file.relative_to(root).as_posix() for file in found]
        told = ", ".join([*names[:5], *(["..."] if len(names) > 5 else [])])
        raise UsageError(f"several scripts train: {told}. Name one: gate init {shlex.quote(names[0])}")
    return read(found[0]) if found else None


def _python_files(root: Path) -> Iterator[Path]:
    """A project's Python files, its tests and virtual environments left out; the nearest ones first."""
    folders = [root]
    for folder in folders:
        try:
            entries = sorted(folder.iterdir())
        except OSError:
            continue
        yield from (entry for entry in entries if entry.suffix == ".py" and entry.is_file())
        folders += [entry for entry in entries if entry.is_dir() and _searched(entry)]


def _searched(folder: Path) -> bool:
    apart = folder.name.startswith(".") or folder.name in _APART
    return not apart and not folder.is_symlink() and not (folder / "pyvenv.cfg").exists()


def _modules(tree: ast.Module) -> Iterator[str]:
    known = {"Module"}
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and any(source(base).rpartition(".")[2] in known for base in node.bases):
            known.add(node.name)
            yield node.name


def _importable(tree: ast.Module) -> bool:
    """Whether all that stands outside functions defines something, sets up a library, or is guarded by `if __name__ == "__main__"`."""
    libraries = {
        (alias.asname or alias.name).partition(".")[0] for node in tree.body if isinstance(node, ast.Import) for alias in node.names
    }

    def harmless(node: ast.stmt) -> bool:
        if isinstance(node, ast.Expr):
            setting = isinstance(node.value, ast.Call) and source(node.value.func).partition(".")[0] in libraries
            return isinstance(node.value, ast.Constant) or setting
        return isinstance(node, _HARMLESS) or (isinstance(node, ast.If) and "__name__" in source(node.test))

    return all(map(harmless, tree.body))
