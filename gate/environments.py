"""Environments for other versions of torch, made by uv and kept in the user's cache.

An environment appears whole or not at all: it is built aside and renamed, with a marker in it that says what it holds.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from gate import installer
from gate.errors import NoTorch
from gate.inquiry import Holding, NoAnswer, ask
from gate.progress import Progress
from gate.version import agrees

MARKER = "gate-environment.json"
_BUILDING = ".building-"  # begins the name of a folder in which one is made
_FORMAT = 1


@dataclass(frozen=True)
class Recipe:
    """What an environment is made of.

    Attributes:
        torch: the version asked for.
        base: the interpreter that it is made from.
        python: that interpreter's version, "3.11.7".
        requirements: everything but torch, sorted.
        pins: versions by name that hold for what gets installed, also indirectly.
        backend: which build of torch (UV_TORCH_BACKEND), empty by default.
    """

    torch: str
    base: Path
    python: str
    requirements: tuple[str, ...]
    pins: Mapping[str, str] = field(default_factory=dict)
    backend: str = ""

    @property
    def key(self) -> str:
        """The name of its folder: equal for equal content, wherever it is made."""
        content = [_FORMAT, self.torch, self.python, self.requirements, sorted(self.pins.items()), self.backend]
        return f"torch-{self.torch}-python-{self.python}-{hashlib.sha256(json.dumps(content).encode()).hexdigest()[:12]}"


@dataclass(frozen=True)
class Environment:
    """An environment in the cache.

    Attributes:
        folder: where it is.
        torch: the full version that it gave when it was imported there.
        python: its interpreter's version.
        requirements, backend: as in its recipe.
        distributions: all of them, names to versions.
    """

    folder: Path
    torch: str
    python: str
    requirements: tuple[str, ...]
    backend: str
    distributions: Mapping[str, str]

    @property
    def interpreter(self) -> Path:
        """Its Python."""
        return self.folder / "bin" / "python"

    def serves(self, recipe: Recipe) -> bool:
        """Whether it is what a recipe would make: what is installed agrees with the pins, what is not does not matter."""
        same = (self.python, self.requirements, self.backend) == (recipe.python, recipe.requirements, recipe.backend)
        pinned = all(self.distributions.get(name, version) == version for name, version in recipe.pins.items())
        return same and pinned and agrees(recipe.torch, self.torch)


def home(variables: Mapping[str, str], say: Callable[[str], object]) -> Path:
    """The folder for environments: below XDG_CACHE_HOME or ~/.cache, or, said, in the temporary folder where neither can be written."""
    named = Path(variables.get("XDG_CACHE_HOME", ""))
    user = Path(variables.get("HOME") or os.path.expanduser("~"))  # noqa: PTH111  (pathlib's raises for a user without a home)
    for cache in (named, user / ".cache"):
        folder = cache / "gate" / "environments"
        if cache.is_absolute() and _writable(folder):
            return folder
    folder = _fallback()
    owner = folder.parent
    owner.mkdir(mode=0o700, exist_ok=True)
    if owner.is_symlink() or owner.stat().st_uid != os.getuid():
        raise NoTorch(f"{owner} belongs to another user, and there is no cache folder of yours. Set XDG_CACHE_HOME to one.")
    say(f"no cache folder can be written: environments are kept in {folder} until it is cleared; set XDG_CACHE_HOME to change that")
    folder.mkdir(exist_ok=True)
    return folder


def cached(home: Path) -> list[Environment]:
    """Every whole environment in a folder, by name; those whose interpreter is gone are left out."""
    found = [_read(folder) for folder in sorted(home.iterdir()) if not folder.name.startswith(".")] if home.is_dir() else []
    return [environment for environment in found if environment is not None]


def find(home: Path, recipe: Recipe) -> Environment | None:
    """A cached environment that serves a recipe: the one made by it, else the first of others."""
    fitting = [environment for environment in cached(home) if environment.serves(recipe)]
    fitting.sort(key=lambda environment: environment.folder.name != recipe.key)
    for environment in fitting[:1]:
        with contextlib.suppress(OSError):
            os.utime(environment.folder / MARKER)  # when it was used last
        return environment
    return None


def make(home: Path, recipe: Recipe, progress: Progress) -> Environment:
    """The environment of a recipe, installed now unless it is there; two processes or threads that want the same one install it once.

    Raises:
        NoTorch: it cannot be made; holds uv's reason and what to do.
    """
    try:
        with _locked(home, recipe, progress):
            return find(home, recipe) or _build(home, recipe, progress)
    except installer.Failed as error:
        raise NoTorch(f"torch {recipe.torch} cannot be had for Python {recipe.python}: {error}") from None
    except OSError as error:
        raise NoTorch(
            f"torch {recipe.torch} cannot be installed in {home}: {error.strerror or error}. Free space there or set XDG_CACHE_HOME."
        ) from None


def size(environment: Environment) -> tuple[int, int]:
    """Bytes of all its files, and of those alone that share no disk space with uv's own cache (what removing it frees for sure)."""
    files = [facts for facts in (path.lstat() for path in environment.folder.rglob("*")) if not stat.S_ISDIR(facts.st_mode)]
    return sum(facts.st_size for facts in files), sum(facts.st_size for facts in files if facts.st_nlink == 1)


def remove(environment: Environment) -> None:
    """Removes an environment; a process killed meanwhile leaves none that looks whole."""
    (environment.folder / MARKER).unlink(missing_ok=True)
    shutil.rmtree(environment.folder)


def leftovers(home: Path) -> list[Path]:
    """Environments half made or half removed, by killed processes, and those whose interpreter is gone. Some may be in the making."""
    found = [path for path in sorted(home.iterdir()) if path.is_dir() and not path.is_symlink()] if home.is_dir() else []
    return [path for path in found if path.name.startswith(_BUILDING) or not (path.name.startswith(".") or _whole(path))]


def clear(leftover: Path) -> bool:
    """Removes a leftover, unless a process makes that environment at present; says whether it is gone."""
    key = leftover.name.removeprefix(_BUILDING).rpartition("-")[0] if leftover.name.startswith(_BUILDING) else leftover.name
    with (leftover.parent / f".{key}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        if leftover.name.startswith(_BUILDING) or not _whole(leftover):  # it may have become whole by now
            shutil.rmtree(leftover, ignore_errors=True)
    return not leftover.exists()


def _whole(folder: Path) -> bool:
    """Whether it looks like an environment, of whatever format."""
    return (folder / MARKER).is_file() and (folder / "bin" / "python").exists()


def _build(home: Path, recipe: Recipe, progress: Progress) -> Environment:
    target = home / recipe.key
    for leftover in home.glob(f"{_BUILDING}{recipe.key}-*"):  # of a killed process: we hold the lock
        shutil.rmtree(leftover, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f"{_BUILDING}{recipe.key}-", dir=home, ignore_cleanup_errors=True) as name:
        aside = Path(name) / "environment"
        variables = installer.environment(os.environ, home.parent / "uv" if home == _fallback() else None)
        with progress.task(f"installing torch {recipe.torch} for Python {recipe.python}") as tell:
            installer.run(["venv", "--no-project", "--relocatable", "--python", str(recipe.base), str(aside)], variables, tell)
            installer.run(_install(recipe, aside), variables, tell)
            tell("importing torch for the first time")
            holding = _measure(aside, recipe)
        environment = Environment(target, holding.torch, recipe.python, recipe.requirements, recipe.backend, holding.distributions)
        (aside / MARKER).write_text(json.dumps({**asdict(environment), "folder": None, "format": _FORMAT}, indent=2), encoding="utf-8")
        if target.exists():  # not whole, or its interpreter is gone
            shutil.rmtree(target)
        aside.rename(target)
    return environment


def _install(recipe: Recipe, aside: Path) -> list[str]:
    requirements, pins = aside.parent / "requirements.txt", aside.parent / "pins.txt"
    requirements.write_text("\n".join([*recipe.requirements, f"torch=={recipe.torch}", ""]), encoding="utf-8")
    pins.write_text("".join(f"{name}=={version}\n" for name, version in recipe.pins.items()), encoding="utf-8")
    python = str(aside / "bin" / "python")
    return ["pip", "install", "--python", python, "--requirement", str(requirements), "--constraint", str(pins)]


def _measure(aside: Path, recipe: Recipe) -> Holding:
    """What torch says there, and the distributions; a first import, which also writes the bytecode that later ones use."""
    variables = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    try:
        holding = ask(aside / "bin" / "python", variables, load=True)
    except NoAnswer as error:
        raise installer.Failed(f"it was installed but cannot be imported: {error}") from None
    if not agrees(recipe.torch, holding.torch):
        raise installer.Failed(f"what was installed calls itself {holding.torch}. Look at UV_FIND_LINKS and UV_INDEX.")
    return holding


def _read(folder: Path) -> Environment | None:
    try:
        facts = json.loads((folder / MARKER).read_text(encoding="utf-8"))
        known = facts.pop("format") == _FORMAT
        environment = Environment(**{**facts, "folder": folder, "requirements": tuple(facts["requirements"])})
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return environment if known and environment.interpreter.exists() else None


@contextlib.contextmanager
def _locked(home: Path, recipe: Recipe, progress: Progress) -> Iterator[None]:
    """Waits for the lock of a recipe. The system frees it when its process ends; the file stays."""
    with (home / f".{recipe.key}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with progress.task(f"waiting for another gate that installs torch {recipe.torch}"):
                fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _fallback() -> Path:
    """Where environments go when no cache folder can be written; uv's own cache has to go there too."""
    return Path(tempfile.gettempdir()) / f"gate-{os.getuid()}" / "environments"
