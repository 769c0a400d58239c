"""Step files and tables, held against the safetensors library in both directions."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from hypothesis import given
from hypothesis import strategies as st

from golden import digest, tensorfile
from golden.leaf import Leaf, Snapshot
from golden.stepfile import ENTRY, Plan
from golden.store import Golden
from golden.writer import Writer
from tests.golden import goldens

NATIVE = [getattr(torch, name) for name in tensorfile.NATIVE]
FOREIGN = [torch.complex64, torch.complex128, torch.float8_e4m3fnuz]


def tensors() -> dict[str, torch.Tensor]:
    """One tensor of each native dtype in each of four shapes, under names that need escapes."""
    shapes: list[tuple[int, ...]] = [(), (0, 3), (5,), (2, 3)]
    made = {}
    for dtype, (index, shape) in itertools.product(NATIVE, enumerate(shapes)):
        size = int(np.prod(shape)) * dtype.itemsize
        content = torch.arange(size, dtype=torch.uint8).remainder(2 if dtype is torch.bool else 200)
        made[f'p/{index}"\\\n~1ü{dtype}'] = content.view(dtype).reshape(shape) if size else torch.empty(shape, dtype=dtype)
    return made


def raw(tensor: torch.Tensor) -> bytes:
    return tensor.reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""


def leaves(contents: dict[str, torch.Tensor]) -> tuple[Leaf, ...]:
    return tuple(Leaf("p", name[2:], "tensor", str(tensor.dtype)[6:], tuple(tensor.shape)) for name, tensor in contents.items())


def test_a_file_is_byte_for_byte_the_librarys(tmp_path: Path) -> None:
    """Its order, its escapes and its padding: the library would have written the same."""
    contents = tensors()
    Plan(leaves(contents)).write(tmp_path / "ours", [raw(tensor) for tensor in contents.values()])
    with safetensors.safe_open(tmp_path / "ours", "pt") as file:
        metadata = file.metadata()
    assert list(metadata) == [ENTRY]
    safetensors.torch.save_file(contents, tmp_path / "theirs", metadata)
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()


def test_the_library_reads_what_was_written(tmp_path: Path) -> None:
    contents = tensors()
    Plan(leaves(contents)).write(tmp_path / "ours", [raw(tensor) for tensor in contents.values()])
    found = safetensors.torch.load_file(tmp_path / "ours")
    assert {name: (tensor.dtype, tensor.shape, raw(tensor)) for name, tensor in found.items()} == {
        name: (tensor.dtype, tensor.shape, raw(tensor)) for name, tensor in contents.items()
    }


def test_the_table_of_digests_is_a_safetensors_file_of_one_tensor(tmp_path: Path) -> None:
    golden = goldens.golden(tmp_path / "g")
    found = safetensors.torch.load_file(golden.folder / "digests.safetensors")["digests"].numpy()
    assert found.dtype == np.uint64
    assert found.shape == (3, 6, 2)
    assert np.array_equal(found[1], golden.digests(2))


@pytest.mark.parametrize("dtype", [*NATIVE, *FOREIGN], ids=str)
def test_every_dtype_comes_back_bit_by_bit(tmp_path: Path, dtype: torch.dtype) -> None:
    """A dtype that safetensors has keeps its name in the file; any other is bytes, and the leaf's line tells what they are."""
    data = bytes(range(2 * 3 * dtype.itemsize))
    leaf = Leaf("p", "w", "tensor", str(dtype)[6:], (2, 3))
    writer = Writer(tmp_path / "g")
    writer.add(Snapshot(1, (leaf,), digest.of([data]), [data]))
    writer.finish(**goldens.FACTS)
    golden = Golden.open(tmp_path / "g")
    golden.check()
    assert golden.leaves(1) == (leaf,)
    found = golden.bytes(1, "p/w")
    assert found is not None
    assert found.tobytes() == data
    with safetensors.safe_open(golden.file(1), "pt") as file:
        stored = file.get_slice("p/w")
        assert stored.get_shape() == ([2, 3] if dtype in NATIVE else [len(data)])
        assert (stored.get_dtype() == "U8") is (dtype in FOREIGN or dtype is torch.uint8)


def test_arrays_of_numpy_are_native_as_well() -> None:
    assert tensorfile.held("numpy:float32", (2,)) == tensorfile.held("float32", (2,))
    assert tensorfile.held("numpy:longdouble", (2,), 32) == tensorfile.Held("U8", (32,), 32)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.text(st.characters(exclude_categories=["Cs"])))
def test_any_name_and_any_text_come_back(name: str, text: str) -> None:
    """Names with quotes, line breaks, zeros; the library reads the same, and writes the same."""
    beginning = tensorfile.start(
        tensorfile.listing([(f"p/{name}", tensorfile.Held("U8", (1,), 1))]), f"{{{tensorfile.quoted(ENTRY)}:{tensorfile.quoted(text)}}}"
    )
    assert beginning + b"x" == safetensors.torch.save({f"p/{name}": torch.tensor([ord("x")], dtype=torch.uint8)}, {ENTRY: text})


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "truncated, or no safetensors"),
        (b"\2\0\0\0\0\0\0", "truncated, or no safetensors"),
        (b"\3\0\0\0\0\0\0\0{}", "truncated, or no safetensors"),
        (b"\xff" * 8 + b"{}", "a header of 18446744073709551615"),
        (b"\2\0\0\0\0\0\0\0\xff\xff", "codec can't decode"),
    ],
)
def test_a_header_is_not_believed(content: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        tensorfile.header(np.frombuffer(content, np.uint8))


def test_a_header_beyond_what_the_library_reads_is_not_read() -> None:
    """100 MB; the memory is not touched, whatever the length says."""
    content = np.zeros(tensorfile.MOST_HEADER + 16, np.uint8)
    content[:8] = np.frombuffer((tensorfile.MOST_HEADER + 8).to_bytes(8, "little"), np.uint8)
    with pytest.raises(ValueError, match="truncated, or no safetensors"):
        tensorfile.header(content)
    content[:8] = np.frombuffer((8).to_bytes(8, "little"), np.uint8)
    assert tensorfile.header(content) == "\0" * 8
