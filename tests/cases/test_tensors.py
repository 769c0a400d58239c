"""What a tensor may be: G5 to G9."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.cases.recordings import differences, kinds, only, state

DTYPES = sorted({value for value in vars(torch).values() if isinstance(value, torch.dtype)}, key=str)
QUANTIZED = [torch.qint8, torch.quint8, torch.qint32, torch.quint4x2, torch.quint2x4]


class Holder(nn.Module):
    """A module with one buffer."""

    def __init__(self, buffer: Tensor) -> None:
        super().__init__()
        self.register_buffer("buffer", buffer)


@pytest.mark.case("G5")
@pytest.mark.parametrize("other", [(0, 4), (1, 3), (0, 3, 0), (0,)], ids=str)
def test_a_tensor_without_elements_has_its_shape(tmp_path: Path, other: tuple[int, ...]) -> None:
    """Shape (0, 3) is recorded and verified; any other shape is drift of kind shape, with or without elements."""
    golden = state(tmp_path / "golden", model=Holder(torch.zeros(0, 3)))
    assert golden.digest(1, "model/buffer") == state(tmp_path / "none", a=torch.zeros(0)).digest(1, "a")
    assert differences(golden, state(tmp_path / "again", model=Holder(torch.zeros(0, 3)))) == ()
    found = only(golden, state(tmp_path / "other", model=Holder(torch.zeros(other))))
    assert (found.kind.value, found.path, found.expected, found.actual) == ("shape", "model/buffer", "[0, 3]", str(list(other)))


def filled(dtype: torch.dtype, turned: bool) -> Tensor:
    """Six elements of any dtype over given bytes (some dtypes have no arithmetic at all), one bit of them turned or not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # complex32 is experimental, quantized dtypes are on their way out
        if dtype in QUANTIZED:
            return quantized(dtype, turned)
        tensor = torch.empty((3, 2), dtype=dtype)
    raw = torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage())
    raw.copy_(torch.arange(raw.numel()) % (2 if dtype is torch.bool else 251))
    raw[0] ^= turned
    return tensor


def quantized(dtype: torch.dtype, turned: bool) -> Tensor:
    values = torch.tensor([[0.0, 1.0], [2.0, 3.0], [1.0, 1.0 if turned else 2.0]])
    if dtype in (torch.quint4x2, torch.quint2x4):
        return torch.quantize_per_channel(values, torch.ones(3), torch.zeros(3), 0, dtype)
    return torch.quantize_per_tensor(values, 1.0, 0, dtype)


@pytest.mark.case("G6")
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: str(dtype).removeprefix("torch."))
def test_a_buffer_of_every_dtype_is_recorded(tmp_path: Path, dtype: torch.dtype) -> None:
    """The same bytes are identical, one bit of them is one element of drift."""
    golden = state(tmp_path / "golden", model=Holder(filled(dtype, False)))
    assert differences(golden, state(tmp_path / "again", model=Holder(filled(dtype, False)))) == ()
    found = only(golden, state(tmp_path / "turned", model=Holder(filled(dtype, True))))
    assert (found.kind.value, found.differing) == ("bits", 1)
    assert found.path.startswith("model/buffer")


@pytest.mark.case("G6")
@pytest.mark.parametrize(("one", "other"), [(torch.float8_e4m3fn, torch.uint8), (torch.bool, torch.uint8), (torch.int16, torch.uint16)])
def test_the_same_bytes_of_another_dtype_are_drift(tmp_path: Path, one: torch.dtype, other: torch.dtype) -> None:
    content = torch.tensor([0, 1, 1, 0], dtype=torch.uint8)
    sides = (state(tmp_path / str(dtype), model=Holder(content.view(dtype))) for dtype in (one, other))
    found = only(*sides)
    assert (found.kind.value, found.expected, found.actual) == ("dtype", *(str(dtype).removeprefix("torch.") for dtype in (one, other)))


@pytest.mark.case("G7")
@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
def test_complex_buffers_are_recorded_in_both_parts(tmp_path: Path, dtype: torch.dtype) -> None:
    """A lazy conjugate counts as what it reads as, and the sign of an imaginary zero as a bit."""
    values = torch.tensor([1 + 2j, 3 - 4j, 0j], dtype=dtype)
    golden = state(tmp_path / "golden", model=Holder(values))
    content = golden.bytes(1, "model/buffer")
    assert content is not None
    assert content.tobytes() == values.numpy().tobytes()
    assert differences(golden, state(tmp_path / "again", model=Holder(values.conj().resolve_conj().conj()))) == ()
    found = only(golden, state(tmp_path / "conjugate", model=Holder(values.conj())))
    assert (found.kind.value, found.differing, found.elements, found.index) == ("bits", 3, 3, (0,))
    assert [len(side.split()) for side in (found.expected or "", found.actual or "")] == [2, 2]
    off = values.clone()
    torch.view_as_real(off)[2, 1] *= -1
    assert torch.equal(values, off)
    zero = only(golden, state(tmp_path / "zero", model=Holder(off)))
    assert (zero.differing, zero.index) == (1, (2,))


@pytest.mark.case("G8")
def test_a_channels_last_model_is_recorded_as_it_lies(tmp_path: Path) -> None:
    """Its logical bytes are those of the contiguous one; that its weights lie otherwise is drift of kind layout, and only that."""

    def net(form: torch.memory_format) -> Any:
        torch.manual_seed(0)
        built: Any = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Conv2d(4, 2, 3))
        return built.to(memory_format=form)

    golden = state(tmp_path / "golden", model=net(torch.channels_last))
    content = golden.bytes(1, "model/0.weight")
    assert content is not None
    assert content.tobytes() == net(torch.contiguous_format)[0].weight.detach().numpy().tobytes()
    assert differences(golden, state(tmp_path / "again", model=net(torch.channels_last))) == ()
    found = differences(golden, state(tmp_path / "dense", model=net(torch.contiguous_format)))
    assert [(each.kind.value, each.path) for each in found] == [("layout", "model/0.weight"), ("layout", "model/2.weight")]
    assert (found[0].expected, found[0].actual) == ("strides [27, 1, 9, 3]", "strides [27, 9, 3, 1]")


@pytest.mark.case("G8")
@pytest.mark.parametrize("view", ["t()", "[:, ::2]", "[1:, 1:]", "[0].expand(3, 4)"])
def test_views_are_recorded_as_what_they_read_as(tmp_path: Path, view: str) -> None:
    """Permuted, strided, cut and expanded tensors have the bytes of their contiguous copies, and another layout."""
    base = torch.arange(12.0).reshape(3, 4)
    views = {"t()": base.t(), "[:, ::2]": base[:, ::2], "[1:, 1:]": base[1:, 1:], "[0].expand(3, 4)": base[0].expand(3, 4)}
    golden = state(tmp_path / "golden", value=views[view])
    content = golden.bytes(1, "value")
    assert content is not None
    assert content.tobytes() == views[view].contiguous().numpy().tobytes()
    assert differences(golden, state(tmp_path / "again", value=views[view])) == ()
    assert kinds(golden, state(tmp_path / "dense", value=views[view].contiguous())) == [("layout", "value")]


class Tied(nn.Module):
    """An embedding whose weight the head has as well: the very tensor, or a copy of it."""

    def __init__(self, tied: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(5, 3)
        self.head = nn.Linear(3, 5, bias=False)
        self.head.weight = self.embedding.weight if tied else nn.Parameter(self.embedding.weight.detach().clone())


@pytest.mark.case("G9")
def test_a_tied_embedding_stays_tied(tmp_path: Path) -> None:
    """Recorded under both names; untied with equal bytes is drift of kind sharing at the later of them, either way round."""
    golden, untied = state(tmp_path / "golden", model=Tied(True)), state(tmp_path / "untied", model=Tied(False))
    assert golden.digest(1, "model/head.weight") == golden.digest(1, "model/embedding.weight") == untied.digest(1, "model/head.weight")
    assert differences(golden, state(tmp_path / "again", model=Tied(True))) == ()
    found = only(golden, untied)
    assert (found.kind.value, found.path, found.expected, found.actual) == (
        "sharing", "model/head.weight", "model/embedding.weight", "nothing"
    )  # fmt: skip
    assert kinds(untied, golden) == [("sharing", "model/head.weight")]
