"""What planted faults (gate mutate) showed that no test looked at."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from golden.compare import Kind, compare, compare_files
from golden.errors import CorruptGolden, Refused, ScenarioFailed, StoreError
from golden.names import Names
from golden.plan import Plan
from golden.state import DEEPEST, Builder
from golden.store import Golden
from tests.golden.goldens import write
from tests.golden.states import leaves, read


def chain(depth: int) -> nn.Module:
    """Modules one inside the other, `depth` of them."""
    module: nn.Module = nn.Identity()
    for _ in range(depth - 1):
        module = nn.Sequential(module)
    return module


def test_a_value_that_differs_is_named_by_step_phase_and_texts(tmp_path: Path) -> None:
    """Also where its texts are not looked up, because others come first."""
    one = write(tmp_path / "one", [{"loss": "1", "count": "5"}, {"loss": "1", "count": "5"}])
    other = write(tmp_path / "other", [{"loss": "1", "count": "5"}, {"loss": "2", "count": "6"}])
    first, second = compare(one, other, limit=1).differences
    assert (first.step, first.phase, first.path, first.kind, first.expected, first.actual) == (2, "loss", "loss", Kind.VALUE, "1", "2")
    assert (second.step, second.phase, second.path, second.kind, second.expected, second.actual) == (
        *(2, "count", "count", Kind.VALUE),
        *(None, None),
    )


def test_files_that_are_whole_are_compared_by_what_they_hold(tmp_path: Path) -> None:
    """Of two goldens with nothing damaged, every difference is there that the digests show."""
    array = np.arange(6, dtype=np.float32)
    one = write(tmp_path / "one", [{"model/a": array, "model/b": array}])
    other = write(tmp_path / "other", [{"model/a": array, "model/b": array + 1}])
    found, damaged = compare_files(one, other)
    assert ([difference.path for difference in found.differences], damaged) == (["model/b"], ())
    assert compare_files(one, one)[0].identical


def test_what_stands_at_two_places_holds_itself_at_none() -> None:
    """A container, and a Module, twice side by side."""
    shared = [1.0, torch.ones(2)]
    assert "state/b/1" in leaves(state={"a": shared, "b": shared})
    layer = nn.Linear(1, 1)
    twice = nn.ModuleDict({"a": layer, "b": layer})
    assert {"model/a.weight", "model/b.weight"} <= set(leaves(model=twice))


def test_a_module_that_holds_itself_is_refused_by_its_path() -> None:
    outer, inner = nn.Module(), nn.Module()
    outer.add_module("inner", inner)
    inner.add_module("again", inner)
    with pytest.raises(Refused, match=r"model/inner\.again.*holds itself"):
        read(model=outer)


def test_modules_lie_inside_each_other_as_deep_as_is_said() -> None:
    read(model=chain(DEEPEST))
    with pytest.raises(Refused, match=str(DEEPEST)):
        read(model=chain(DEEPEST + 1))


def test_a_module_that_only_the_builder_meets_is_refused_by_its_path_too() -> None:
    """What a ``state_dict()`` hands out is searched for names by nobody before it is built."""
    inner = nn.Module()
    inner.add_module("again", inner)
    for module, place in ((inner, "m/again"), (nn.Sequential(inner), "m/0.again"), (chain(DEEPEST + 1), "m/" + ".".join("0" * DEEPEST))):
        with pytest.raises(Refused) as refused:
            Builder("m", Names()).build(module)
        assert str(refused.value).startswith(f"{place}: torch.nn.modules.")
        assert f"it holds itself, or lies inside {DEEPEST} others" in str(refused.value)
    builder = Builder("m", Names())
    builder.build(chain(DEEPEST))
    assert len(builder.leaves) == 1
    assert not builder.named, "names decide the paths of optimizers alone"


class Asking(nn.Module):
    """Saves how it is asked."""

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}kept"] = keep_vars


def test_a_module_that_saves_by_its_own_way_is_asked_for_its_own_tensors() -> None:
    """Detached ones would not be known as the parameters that they are."""
    _, kept = leaves(model=Asking())["model/kept"]
    assert kept == b"True"


class Fragile(nn.Module):
    """Saves something by a way of its own, as long as it is whole."""

    whole = True

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        if not self.whole:
            raise LookupError("lost")
        destination[f"{prefix}more"] = torch.ones(1)


def test_a_module_that_cannot_save_itself_is_named_by_its_path() -> None:
    fragile = Fragile()
    model = nn.ModuleDict({"part": fragile})
    plan = Plan()
    assert "model/part.more" in leaves(plan, model=model)
    fragile.whole = False
    with pytest.raises(ScenarioFailed, match=r"model/part: .*lost"):
        read(plan, model=model)


def stripped(file: Path) -> None:
    """Takes a step file's metadata away, as a tool that writes safetensors anew does."""
    content = file.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    del header["__metadata__"]
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + size :])


def test_a_step_file_without_metadata_is_read_only_where_that_is_asked_for(tmp_path: Path) -> None:
    array = np.arange(6, dtype=np.float32)
    whole = write(tmp_path / "golden", [{"model/a": array}])
    stripped(whole.file(1))
    with pytest.raises(CorruptGolden):
        Golden.open(whole.folder).bytes(1, "model/a")
    found = Golden.open(whole.folder, bare=True).bytes(1, "model/a")
    assert found is not None
    assert found.tobytes() == array.tobytes()


def test_a_golden_that_is_replaced_again_and_again_is_not_read_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    golden = write(tmp_path / "golden", [{"loss": "1"}])
    turns = iter(range(10**6))
    monkeypatch.setattr("golden.store._identity", lambda folder: (0, 0, next(turns)))
    with pytest.raises(StoreError, match=r"golden.*is replaced again and again"):
        Golden.open(golden.folder)


@pytest.mark.parametrize(("damaged", "told"), [(1, "model/a does not have its digest"), (2, "nor have 1 others"), (3, "nor have 2 others")])
def test_a_damaged_step_file_is_named_with_what_is_wrong_in_it(tmp_path: Path, damaged: int, told: str) -> None:
    names = ("model/a", "model/b", "model/c")
    golden = write(tmp_path / "golden", [{name: np.full(2, place, np.float32) for place, name in enumerate(names)}])
    file = golden.file(1)
    content = bytearray(file.read_bytes())
    for place in range(damaged):
        content[-24 + 8 * place] ^= 1
    file.write_bytes(bytes(content))
    with pytest.raises(CorruptGolden) as caught:
        Golden.open(golden.folder).check()
    assert str(caught.value).startswith(str(file))
    assert str(caught.value).endswith(told)
    with pytest.raises(CorruptGolden, match=f"^{file}: model/a does not have its digest$"):
        Golden.open(golden.folder).bytes(1, "model/a")


def test_a_damaged_scalar_is_not_read_as_text(tmp_path: Path) -> None:
    golden = write(tmp_path / "golden", [{"loss": "1234567"}])
    file = golden.file(1)
    file.write_bytes(file.read_bytes().replace(b"1234567", b"1234568"))
    with pytest.raises(CorruptGolden):
        Golden.open(golden.folder).text(1, "loss")
    assert Golden.open(golden.folder).text(1, "loss", check=False) == "1234568"


def test_a_golden_that_was_replaced_while_it_was_read_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the file of the other one fits or not."""
    golden = write(tmp_path / "golden", [{"model/a": np.arange(6, dtype=np.float32)}])
    whole, cut = Golden.open(golden.folder), Golden.open(golden.folder)
    monkeypatch.setattr("golden.store._identity", lambda folder: (0, 0, 0))
    with pytest.raises(StoreError, match=r"golden: was replaced while it was being read"):
        whole.bytes(1, "model/a")
    golden.file(1).write_bytes(b"nothing")
    with pytest.raises(StoreError, match=r"golden: was replaced while it was being read"):
        cut.bytes(1, "model/a")


def test_what_the_system_or_a_file_keeps_from_being_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that may not be looked at or listed, and a file where a golden should be."""
    (tmp_path / "file").write_text("")
    with pytest.raises(CorruptGolden, match=r"file: is no folder"):
        Golden.open(tmp_path / "file")
    golden = write(tmp_path / "golden", [{"loss": "1"}])
    for method in ("stat", "iterdir"):
        with monkeypatch.context() as patch:
            patch.setattr(Path, method, _denied)
            with pytest.raises(StoreError, match=r"golden: .*[Dd]enied"):
                Golden.open(golden.folder)


def _denied(path: Path, **options: Any) -> Any:
    raise PermissionError(13, "Permission denied", str(path))
