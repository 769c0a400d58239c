"""The tests of a project: which files hold some, and which of them have to do with a source."""

from __future__ import annotations

import ast
import glob
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePath

from gate import encoding
from gate.claims.prose import is_prose
from gate.collected import Names
from gate.pytest_settings import Settings


@dataclass(frozen=True)
class Suite:
    """A project's test files.

    Attributes:
        project: the project's folder.
        names: all files of the project, relative to it.
        tests: where tests are looked for, relative to it.
    """

    project: Path
    names: tuple[str, ...]
    tests: tuple[str, ...]

    @classmethod
    def of(cls, project: Path, names: Sequence[str], paths: Sequence[str] = ()) -> Suite:
        """As pytest's configuration has it; `paths` replace its testpaths."""
        known = Settings.at(project).words("testpaths")
        found = [one for place in known for one in sorted(glob.glob(place, root_dir=project, recursive=True))]  # noqa: PTH207  # takes "."
        given = [PurePath(place).as_posix() for place in found]
        return cls(project, tuple(names), tuple(paths or given or (["tests"] if (project / "tests").is_dir() else ["."])))

    @cached_property
    def roots(self) -> tuple[str, ...]:
        """Where imports start, relative to the project."""
        return tuple(root for root in ("src", ".") if (self.project / root).is_dir())

    @cached_property
    def modules(self) -> Mapping[str, str]:
        """The project's files by the dotted names that they can be imported by."""
        found: dict[str, str] = {}
        for name in self.names:
            for root in reversed(self.roots):
                if name.endswith(".py") and (root == "." or name.startswith(f"{root}/")):
                    parts = name.removeprefix(f"{root}/").removesuffix(".py").split("/")
                    found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = name
        return found

    def files(self) -> list[str]:
        """The files that hold tests."""
        return [name for name in self.names if self._holds_tests(name) and self._below(name, self.tests)]

    @cached_property
    def _called(self) -> Names:
        return Names.of(Settings.at(self.project))

    def _holds_tests(self, name: str) -> bool:
        return name.endswith(".py") and self._called.has_file(name)

    @staticmethod
    def _below(name: str, places: Iterable[str]) -> bool:
        return any(place in (".", name) or name.startswith(f"{place.rstrip('/')}/") for place in places)

    def asked(self, targets: Sequence[str], everything: bool) -> list[str]:
        """The test files that import a target's package themselves or through what stands beside them, or are named like it."""
        packages = {package(target) for target in targets}
        return [file for file in self.files() if everything or packages.intersection({*self.imported(file), *file.split("/")[:-1]})]

    def documents(self) -> dict[str, str]:
        """The texts of the project's documents that stand beside pyproject.toml: they may name tests that hold what they promise."""
        names = [name for name in self.names if "/" not in name and is_prose(name)]
        return {name: (self.project / name).read_text(encoding="utf-8", errors="replace") for name in names}

    def support(self, file: str) -> frozenset[str]:
        """The files beside the tests that a test file needs, conftest files and itself included."""
        found = {file}
        ahead = [file, *self._conftests(file)]
        while ahead:
            name = ahead.pop()
            found.add(name)
            inner = [self.modules[m] for m in self._names_in(name) if m in self.modules]
            ahead += [other for other in inner if other not in found and self._beside(other)]
        return frozenset(found)

    def imported(self, file: str) -> set[str]:
        """The top-level names that a test file imports, itself or through what stands beside it."""
        return {name.split(".")[0] for support in self.support(file) for name in self._names_in(support)}

    def _beside(self, name: str) -> bool:
        top = {test.split("/")[0] for test in self.tests} - {"."}
        return name.split("/")[0] in top or self._holds_tests(name) or name.endswith("conftest.py")

    def _conftests(self, file: str) -> Iterator[str]:
        parts = file.split("/")[:-1]
        for end in range(len(parts) + 1):
            name = "/".join([*parts[:end], "conftest.py"])
            if name in self._known:
                yield name

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.names)

    def _names_in(self, name: str) -> frozenset[str]:
        cache: dict[str, frozenset[str]] = self.__dict__.setdefault("_imports", {})
        if name not in cache:
            cache[name] = frozenset(_imports((self.project / name).read_bytes()))
        return cache[name]


def package(file: str) -> str:
    """The top-level name that a source is imported by."""
    parts = file.removeprefix("src/").removesuffix(".py").split("/")
    return parts[0]


def _imports(text: bytes) -> Iterator[str]:
    tree = encoding.tree(text)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def third_party(suite: Suite, files: Iterable[str]) -> list[str]:
    """The modules that these files import and the project does not hold."""
    own = {name.split(".")[0] for name in suite.modules}
    names = {name for file in files for name in suite._names_in(file)}
    top = {name.split(".")[0] for name in names}
    return sorted(name for name in top if name not in own and name not in sys.stdlib_module_names and name != "pytest")
