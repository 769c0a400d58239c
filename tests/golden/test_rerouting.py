"""Where a run's imports come from, in real processes."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

import golden
from golden.rerouting import ProjectFinder
from golden.tree import Tree

SCRIPT = """
import site, sys
from pathlib import Path
# What is tested has no cache: another run of it, edited within the second, would run the old code.
sys.dont_write_bytecode, sys.pycache_prefix = True, str(Path(__file__).parent / "none")
from golden.rerouting import ProjectFinder
from golden.tree import Tree
sys.dont_write_bytecode, sys.pycache_prefix = False, None

project, root, installed, code = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4]
site.addsitedir(installed)
roots = [folder for folder in (root / "goldens", root, root / "src") if folder.is_dir()]
ProjectFinder(Tree(project, root), roots, {"scenarios": root / "goldens" / "scenarios.py"}).install()
exec(compile(code, "<scenario>", "exec"), {"project": project, "root": root})
"""

SOURCE = str(Path(golden.__file__).resolve().parent.parent)  # so that a child tests the golden that this process has


def run(project: Path, code: str, root: Path | None = None, installed: Path | None = None) -> str:
    """What the code prints in a process that has installed a finder; it also finds the distributions `installed`."""
    script = project.parent / "script.py"
    script.write_text(SCRIPT)
    arguments = [sys.executable, str(script), str(project), str(root or project), str(installed or project.parent / "none"), code]
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")}
    environment["PYTHONPATH"] = os.pathsep.join([SOURCE, *filter(None, [environment.get("PYTHONPATH")])])
    done = subprocess.run(arguments, capture_output=True, text=True, cwd=project.parent, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write(tmp_path / "project", {"model.py": "width = 3\n", "goldens/scenarios.py": "import model\n"})


def test_bytecode_is_neither_read_nor_written(project: Path) -> None:
    """An edit of equal length and equal time runs as edited, however the file is loaded, and no cache appears in the project."""
    model = project / "model.py"
    code = """
import importlib.util, model, runpy
spec = importlib.util.spec_from_file_location("other", root / "model.py")
other = importlib.util.module_from_spec(spec); spec.loader.exec_module(other)
print(model.width, other.width)
"""
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(project)], check=True)
    stat = model.stat()
    model.write_text("width = 4\n")
    os.utime(model, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    stale = f"import sys; sys.path.insert(0, {str(project)!r}); import model; print(model.width)"
    assert subprocess.run([sys.executable, "-c", stale], capture_output=True, text=True).stdout == "3\n"  # what is to be prevented
    assert run(project, code) == "4 4"
    for cache in project.rglob("__pycache__"):
        for file in cache.iterdir():
            file.unlink()
        cache.rmdir()
    assert run(project, code) == "4 4"
    assert not list(project.rglob("*.pyc"))


def test_other_modules_keep_their_caches(project: Path) -> None:
    """What lies outside the project, or in an environment within it, is cached as ever."""
    write(project.parent, {"beside/outside.py": ""})
    write(project, {"env/pyvenv.cfg": "", "env/lib/inside.py": ""})
    run(project, "import sys; sys.path[:0] = [str(root / 'env/lib'), str(root.parent / 'beside')]; import outside, inside")
    assert {path.parent.parent.name for path in project.parent.rglob("*.pyc")} == {"beside", "lib"}


def test_a_loader_of_somebody_elses_is_kept_and_caches_nothing(project: Path) -> None:
    """An import hook that transforms sources still does, and leaves no cache either."""
    code = """
import sys
from importlib.machinery import PathFinder, SourceFileLoader
class Loader(SourceFileLoader):
    def source_to_code(self, data, path, **options): return super().source_to_code(data.replace(b"3", b"7"), path, **options)
class Hook:
    @staticmethod
    def find_spec(name, path=None, target=None):
        spec = PathFinder.find_spec(name, path, target)
        if spec and isinstance(spec.loader, SourceFileLoader): spec.loader = Loader(name, spec.origin)
        return spec
sys.meta_path.insert(0, Hook)
import model; print(model.width)
"""
    assert run(project, code) == "7"
    assert not list(project.rglob("*.pyc"))


def test_names_are_looked_up_in_order(project: Path) -> None:
    """The scenario's folder goes before the root, the root before its src, all of them before what is installed."""
    for name, folders in {"one": ["goldens", ".", "src"], "two": [".", "src"], "three": ["src"]}.items():
        write(project, {f"{folder}/{name}.py": f"at = {folder!r}\n" for folder in folders})
    site = write(project.parent / "site", {f"{name}.py": "at = 'site'\n" for name in ("one", "two", "three", "four")})
    code = "import one, two, three, four; print(one.at, two.at, three.at, four.at)"
    assert run(project, code, installed=site) == "goldens . src site"


def test_the_standard_library_is_not_shadowed(project: Path) -> None:
    """A project's random.py or types.py stays out of everybody's way, and can be imported from its package."""
    names = ("random", "types", "queue", "secrets", "profile")
    write(project, {f"goldens/{name}.py": "mine = True\n" for name in names} | {"pkg/__init__.py": "", "pkg/queue.py": "mine = 1\n"})
    code = "import random, types, queue, secrets, profile; print(any(hasattr(m, 'mine') for m in (random, types, queue, secrets, profile)))"
    assert run(project, f"{code}; from pkg import queue; print(queue.mine)") == "False\n1"


def test_golden_is_not_shadowed(project: Path) -> None:
    """A project's folder or file called golden, or gate, does not take the place of ours; its gate can be imported, ours is not here."""
    write(project, {"golden/__init__.py": "raise 1", "goldens/golden.py": "raise 1", "gate/__init__.py": "mine = True\n"})
    assert run(project, "import golden.leaf, gate; print(golden.leaf.Leaf.__name__, gate.mine)") == "Leaf True"


def test_packages_work_as_ever(project: Path) -> None:
    """Relative imports, namespace packages, sources and resources are as without us."""
    write(
        project,
        {"src/deep/inner/a.py": "from .b import x\nfrom ..c import y\n", "src/deep/inner/b.py": "x = 1\n", "src/deep/c.py": "y = 2\n"},
    )
    code = """
import deep.inner.a as a, inspect, pkgutil, deep, importlib.resources
print(a.x, a.y, inspect.getsource(a).count("import"), a.__file__ == str(root / "src/deep/inner/a.py"))
print([m.name for m in pkgutil.iter_modules(deep.__path__)], importlib.resources.files("deep.inner").joinpath("b.py").read_text().strip())
"""
    assert run(project, code) == "1 2 2 True\n['c'] x = 1"


@pytest.fixture
def base(tmp_path: Path, project: Path) -> Path:
    """Another revision of the project: width 2, no module `late`; both have a package, and a namespace package, elsewhere than in src."""
    write(
        project, {"late.py": "x = 1\n", "lib/kept/__init__.py": "v = 'head'\n", "lib/kept/part.py": "v = 'head'\n", "lib/kept/late.py": ""}
    )
    write(project, {"lib/space/part.py": "v = 'head'\n", "lib/space/late.py": ""})
    files = {"model.py": "width = 2\n", "goldens/scenarios.py": "import model\nbase = True\n"}
    files |= {"lib/kept/__init__.py": "v = 'base'\n", "lib/kept/part.py": "from . import v\n", "lib/space/part.py": "v = 'base'\n"}
    return write(tmp_path / "elsewhere" / "base", files)


# Prints whose modules these are, and which do not exist.
BASE = """
import importlib, sys
import model, scenarios
print(model.width, scenarios.base, model.__file__ == str(root / "model.py"))
for name in ("kept", "kept.part", "space.part"):
    module = importlib.import_module(name)
    print(module.v, str(root) in module.__file__, all(str(root) in entry for entry in getattr(module, "__path__", [])))
for name in ("late", "kept.late", "space.late"):
    try: importlib.import_module(name); print("found", name)
    except ModuleNotFoundError: print("none")
print(list(importlib.import_module("space").__path__) == [str(root / "lib/space")])
"""
EXPECTED = "\n".join(["2 True True", *["base True True"] * 3, *["none"] * 3, "True"])


def test_paths_lead_to_the_other_root(project: Path, base: Path) -> None:
    """With .pth files of an editable install, every project module comes from the other root, and what that lacks does not exist."""
    site = write(project.parent / "site", {"_editable.pth": f"{project}\n{project / 'lib'}\n"})
    assert run(project, BASE, base, site) == EXPECTED
    assert not list(base.rglob("*.pyc"))


def test_a_path_of_the_scenarios_own_leads_to_the_other_root(project: Path, base: Path) -> None:
    """An absolute path to the project that is put onto sys.path during the run is re-routed as well."""
    assert run(project, f"import sys; sys.path.insert(0, str(project / 'lib')); sys.path.insert(0, str(project)){BASE}", base) == EXPECTED


def test_a_path_that_was_searched_before_leads_to_the_other_root(project: Path, base: Path) -> None:
    """What an import has found of a folder beforehand is forgotten: a module that only the other root has is found."""
    write(base, {"lib/gone.py": "v = 'base'\n"})
    searched = f"{project / 'lib'}\nimport importlib.util; assert importlib.util.find_spec('gone') is None\n"
    site = write(project.parent / "site", {"_editable.pth": searched})
    assert run(project, "import gone; print(gone.v)", base, site) == "base"


def test_a_path_hook_that_was_there_before_does_not_hide_the_other_root(project: Path, base: Path) -> None:
    """One that takes every folder is asked after ours: a module that only the other root has is found."""
    write(base, {"lib/gone.py": "v = 'base'\n"})
    hook = "import sys; from importlib.machinery import FileFinder, SOURCE_SUFFIXES, SourceFileLoader; "
    hook += "sys.path_hooks.insert(0, FileFinder.path_hook((SourceFileLoader, SOURCE_SUFFIXES)))\n"
    site = write(project.parent / "site", {"_editable.pth": f"{project / 'lib'}\n{hook}"})
    assert run(project, "import gone; print(gone.v)", base, site) == "base"


class Hook:
    """A finder that always finds the same."""

    def __init__(self, spec: ModuleSpec) -> None:
        self.spec = spec

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return self.spec if name == self.spec.name else None


def test_a_named_module_is_found_at_its_file(project: Path) -> None:
    """Whatever else has that name: the standard library's, too."""
    named = {"model": project / "goldens" / "scenarios.py", "queue": project / "model.py"}
    finder = ProjectFinder(Tree(project, project), [project], named)
    for name, file in named.items():
        spec = finder.find_spec(name)
        assert spec is not None
        assert (spec.name, spec.origin) == (name, str(file))


def test_nobody_else_is_asked_for_golden_or_where_the_root_is_the_project(project: Path, base: Path) -> None:
    """Such names are left to the other finders; of another root, a module is looked up through them, at once."""
    assert ProjectFinder(Tree(project, base), [], {}).find_spec("golden.leaf", golden.__path__) is None
    assert ProjectFinder(Tree(project, project), [], {}).find_spec("part", [str(project / "lib" / "space")]) is None
    spec = ProjectFinder(Tree(project, base), [], {}).find_spec("part", [str(project / "lib" / "space")])
    assert spec is not None
    assert spec.origin == str(base / "lib" / "space" / "part.py")


def test_a_module_without_a_file_is_left_as_it_is(project: Path, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An origin that is no place is not taken for a file of the folder that the process is in."""
    spec = ModuleSpec("made", SourceFileLoader("made", "nowhere"), origin="out of nothing")
    monkeypatch.setattr(sys, "meta_path", [Hook(spec)])
    monkeypatch.chdir(project)
    assert ProjectFinder(Tree(project, base), [], {}).find_spec("made") is spec


def test_somebody_elses_loader_is_copied_before_it_is_led_elsewhere(project: Path, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = SourceFileLoader("model", str(project / "model.py"))
    spec = spec_from_file_location("model", project / "model.py", loader=theirs)
    assert spec is not None
    monkeypatch.setattr(sys, "meta_path", [Hook(spec)])
    moved = ProjectFinder(Tree(project, base), [], {}).find_spec("model")
    assert moved is not None
    assert isinstance(moved.loader, SourceFileLoader)
    assert (moved.loader.path, theirs.path) == (str(base / "model.py"), str(project / "model.py"))


def test_an_import_hook_leads_to_the_other_root(project: Path, base: Path) -> None:
    """A finder that maps names to files, as hatch's and setuptools' editable installs use it, is re-routed."""
    files = {"kept": "lib/kept/__init__.py", "late": "late.py", "model": "model.py"}
    hook = f"""
import sys
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        project, files = Path({str(project)!r}), {files!r}
        if name in files: return spec_from_file_location(name, project / files[name])
        if name == "space":
            spec = ModuleSpec(name, None, is_package=True); spec.submodule_search_locations = [str(project / "lib/space")]
            return spec
sys.meta_path.insert(0, Finder)
"""
    site = write(project.parent / "site", {"_hook.py": hook, "_hook.pth": "import _hook\n"})
    assert run(project, BASE, base, site) == EXPECTED
    assert run(project, "import kept, late; print(kept.v)", installed=site) == "head"


def test_setuptools_editable_installs_lead_to_the_other_root(project: Path, base: Path) -> None:
    """The finder that setuptools itself writes for a package whose folder has another name is re-routed."""
    pytest.importorskip("setuptools", "70.1", reason="setuptools writes the finder")
    table = '[project]\nname = "widget"\nversion = "1"\n[tool.setuptools]\npackages = ["widget"]\npackage-dir = {widget = "code"}\n'
    for root, value in ((project, "head"), (base, "base")):
        write(root, {"pyproject.toml": table, "code/__init__.py": f"v = {value!r}\n", "code/part.py": "from . import v\n"})
    write(project, {"code/late.py": ""})
    site = project.parent / "site"
    build = "import sys; from setuptools import build_meta; build_meta.build_editable(sys.argv[1])"
    subprocess.run([sys.executable, "-W", "ignore", "-c", build, str(site)], check=True, cwd=project, capture_output=True)
    wheel = next(site.glob("*.whl"))
    zipfile.ZipFile(wheel).extractall(site)
    assert list(site.glob("__editable__*finder.py"))
    code = """
import widget.part, importlib.util
print(widget.v, widget.part.v, importlib.util.find_spec("widget.late") is not None)
"""
    assert run(project, code, installed=site) == "head head True"
    assert run(project, code, base, site) == "base base False"


def test_the_runs_own_packages_stay(project: Path, base: Path) -> None:
    """golden is the one that judges, also where the other root has a golden; metadata of what is installed in the project is found."""
    write(base, {"golden/__init__.py": "raise 1"})
    write(project, {"src/widget.egg-info/PKG-INFO": "Metadata-Version: 2.1\nName: widget\nVersion: 7\n"})
    site = write(project.parent / "site", {"_editable.pth": f"{project / 'src'}\n"})
    code = "import golden.leaf, importlib.metadata; print(golden.leaf.__name__, importlib.metadata.version('widget'))"
    assert run(project, code, base, site) == "golden.leaf 7"
