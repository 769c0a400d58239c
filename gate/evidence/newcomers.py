"""Which files a check would have read had they been there: patterns of which a new file makes a record stale."""

from __future__ import annotations

import ast
import glob
import importlib.util
import os
import sys
from collections.abc import Collection, Iterable, Iterator
from pathlib import PurePosixPath

from gate import encoding
from gate.check.reach import Reach
from gate.evidence.present import Present, is_document
from gate.evidence.settings import Search

_TESTS = {"test", "tests"}
_NO_DATA = ("", ".toml", ".cfg", ".ini", ".yaml", ".yml", ".lock", ".in", ".txt")  # beside pyproject.toml: other tools' settings
_DOCUMENTS = ("docs", "doc")


def of_tests(present: Present, ran: Collection[str] = ()) -> tuple[str, ...]:
    """Of the tests that a session would collect besides, and of conftest.py files above and among the tests.

    Args:
        present: the project.
        ran: files of tests that ran; empty where only what decides how tests run counts, and a new test does not.
    """
    search = Search.of(present.pytest)
    places = [f"/{place}" for place in search.places]
    if not any(present.matching(f"{place}/**/{name}") or present.matching(place) for place in places for name in search.names):
        places = [""]  # pytest then takes the folder that it was started in
    folders = [place for place in places if not place.endswith(".py")]
    above = {f"/{parent.as_posix()}/conftest.py" for place in places for parent in PurePosixPath(place.lstrip("/")).parents if place}
    conftests = {f"{folder}/**/conftest.py" for folder in folders} | {name.replace("/./", "/") for name in above}
    if not ran:
        return tuple(sorted(conftests))
    tops = {f"{glob.escape(file.split('/')[0])}/*.py" for file in ran if "/" in file}
    tests = {f"{folder}/**/{name}" for folder in folders for name in search.names}
    return tuple(sorted({*conftests, *tests, *tops, *(place for place in places if place.endswith(".py"))}))


def plugins(present: Present) -> tuple[set[str], set[str]]:
    """Local plugins that `-p`, pytest_plugins or PYTEST_PLUGINS names: their files, what they import, and patterns of those not there."""
    search = Search.of(present.pytest)
    python = [path for path in present.files if path.endswith(".py")]
    conftests = [path for path in python if PurePosixPath(path).name == "conftest.py"]
    given = os.environ.get("PYTEST_PLUGINS", "").split(",")
    named = {*search.plugins, *filter(None, given), *(name for path in conftests for name in _named(_tree(present, path)))}
    found, absent = set[str](), set[str]()
    for name in named:
        place = f"/{name.replace('.', '/')}"
        here = {path for path in python if f"/{path}".endswith((f"{place}.py", f"{place}/__init__.py"))}
        found |= here
        absent |= set() if here else set(_absent(present, "", name))
    if found:
        reach = Reach({path: _tree(present, path) for path in python})
        found = {other for path in found for other in reach.of(path)}
    return found, absent


def beside(present: Present, files: Iterable[str], *, documents: bool = False) -> tuple[str, ...]:
    """Of what stands beside files that were read, and may be found there by a glob or an import that may fail.

    A new module in a package that a module was read of; a module that is imported and not there; beside data, more of the same suffix.
    Folders that hold tests are left to `of_tests`; goldens, documents and settings of tools beside pyproject.toml call for nothing.

    Args:
        present: the project.
        files: what was read, relative to the project.
        documents: whether Markdown is read as data.
    """
    read = sorted(set(files))
    modules = [path for path in read if path.endswith(".py")]
    found = {pattern for path in modules for pattern in _in_package(present, path)}
    found |= {pattern for path in read if not path.endswith(".py") for pattern in _more_data(present, path, documents)}
    absent = {pattern for path in modules for name in _imports(path, _tree(present, path)) for pattern in _absent(present, path, name)}
    return tuple(sorted(found | {path for path in absent if not any(present.fits(path[1:], pattern) for pattern in found)}))


def within(present: Present, listed: Iterable[str], *, whole: bool = False) -> tuple[str, ...]:
    """Of folders that were listed: files of the suffixes that stand there, or of any where none stands there.

    Args:
        present: the project.
        listed: the folders, relative to the project; "/" for its own.
        whole: whether all files of a folder below the project's own count.
    """
    found = set[str]()
    for folder in {path.rstrip("/") or "." for path in listed}:
        if whole and folder != ".":
            found.add(f"/{glob.escape(folder)}/*")
            continue
        names = present.folders.get(folder, frozenset())
        suffixes = {PurePosixPath(name).suffix for name in names if not name.startswith(".")}
        likes = [f"{folder}/x{suffix}".removeprefix("./") for suffix in suffixes]
        found |= {pattern for like in likes for pattern in _more_data(present, like, False)}
        if not suffixes and folder != ".":
            found |= set(_more_data(present, f"{folder}/x", False))
    return tuple(sorted(found))


def _in_package(present: Present, path: str) -> Iterator[str]:
    folder = PurePosixPath(path).parent
    siblings = present.folders.get(folder.as_posix(), frozenset())
    if "__init__.py" in siblings and not _TESTS.intersection(folder.parts):
        place = glob.escape(folder.as_posix())
        yield from ("/*.py",) if place == "." else (f"/{place}/*.py", f"/{place}/*/__init__.py")


def _more_data(present: Present, path: str, documents: bool) -> Iterator[str]:
    pure = PurePosixPath(path)
    folder, suffix = pure.parent.as_posix(), pure.suffix
    if any(part.startswith(".") for part in pure.parts) or pure.parts[0] in _DOCUMENTS or present.is_recorded(path):
        return
    if folder == ".":
        if suffix.lower() not in _NO_DATA and not is_document(path):
            yield f"/*{glob.escape(suffix)}"
    elif documents or not is_document(path):
        yield f"/{glob.escape(folder)}/*{glob.escape(suffix)}"


def _absent(present: Present, path: str, name: str) -> Iterator[str]:
    """Where a module would stand that is imported by a name and is not there; nothing where it is, here or among what is installed."""
    parts = name.split(".")
    roots = dict.fromkeys(("", "src/", f"{PurePosixPath(path).parent.as_posix()}/".removeprefix("./")))
    holding = [root for root in roots if present.holds(f"{root}{parts[0]}")]
    if not holding and (parts[0] in sys.stdlib_module_names or _installed(parts[0])):
        return
    for root in holding or roots:
        for end in range(1, len(parts) + 1):
            place = root + "/".join(parts[:end])
            if present.holds(f"{place}.py"):
                break
            if not present.holds(place):
                yield from (f"/{glob.escape(place)}.py", f"/{glob.escape(place)}/__init__.py")
                break


def _installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _imports(path: str, tree: ast.Module | None) -> Iterator[str]:
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = PurePosixPath(path).parts[: -node.level] if node.level else ()
            base = [*above, *((node.module or "").split(".") if node.module else [])]
            yield from (".".join([*base, alias.name] if alias.name != "*" else base) for alias in node.names)


def _named(tree: ast.Module | None) -> Iterator[str]:
    """Strings in what is assigned to pytest_plugins."""
    for node in ast.walk(tree) if tree else ():
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        if any(isinstance(target, ast.Name) and target.id == "pytest_plugins" for target in targets):
            yield from (inner.value for inner in ast.walk(node) if isinstance(inner, ast.Constant) and isinstance(inner.value, str))


def _tree(present: Present, path: str) -> ast.Module | None:
    try:
        return encoding.tree((present.config.root / path).read_bytes())
    except OSError:
        return None
