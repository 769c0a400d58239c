"""Every dtype and representation that torch has."""

from __future__ import annotations

import gc
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.masked import masked_tensor

from golden.errors import Refused
from golden.plan import Plan
from tests.golden.states import leaves, lines, read, same, texts

DTYPES = sorted({value for value in vars(torch).values() if isinstance(value, torch.dtype)}, key=str)
QUANTIZED = [torch.qint8, torch.quint8, torch.qint32, torch.quint4x2, torch.quint2x4]
PLAIN = [dtype for dtype in DTYPES if dtype not in QUANTIZED]


def filled(dtype: torch.dtype, *shape: int, change: int = 0) -> Tensor:
    """A tensor of any dtype over given bytes, for some dtypes have no arithmetic at all."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # complex32 and its like are experimental
        tensor = torch.empty(shape, dtype=dtype)
    raw = torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage())
    raw.copy_((torch.arange(raw.numel()) + 1) % 2 if dtype is torch.bool else torch.arange(raw.numel()) % 251)
    if change:
        raw[0] ^= 1
    return tensor


@pytest.mark.case("G6")
@pytest.mark.case("G7")
@pytest.mark.parametrize("dtype", PLAIN, ids=str)
def test_a_buffer_of_every_dtype_is_recorded_bit_by_bit(dtype: torch.dtype) -> None:
    leaf, data = leaves(a=filled(dtype, 3, 2))["a"]
    raw = bytes((torch.arange(6 * dtype.itemsize) + 1).remainder(2).tolist()) if dtype is torch.bool else bytes(range(6 * dtype.itemsize))
    assert (leaf.type, leaf.shape, data) == (str(dtype).removeprefix("torch."), (3, 2), raw)
    assert same(read(a=filled(dtype, 3, 2)), read(a=filled(dtype, 3, 2)))
    assert not same(read(a=filled(dtype, 3, 2)), read(a=filled(dtype, 3, 2, change=1)))


@pytest.mark.parametrize("dtype", PLAIN, ids=str)
def test_every_dtype_is_recorded_in_every_layout(dtype: torch.dtype) -> None:
    tensor = filled(dtype, 3, 2)
    item = dtype.itemsize
    raw = np.frombuffer(leaves(a=tensor)["a"][1], np.uint8).reshape(3, 2, item)
    leaf, data = leaves(a=tensor.t())["a"]
    assert (leaf.strides, data) == ((1, 2), raw.transpose(1, 0, 2).tobytes())
    leaf, data = leaves(a=tensor[:, 1])["a"]
    assert (leaf.strides, data) == ((2,), raw[:, 1].tobytes())
    leaf, data = leaves(a=tensor[0].expand(2, 2))["a"]
    assert (leaf.strides, data) == ((0, 1), raw[[0, 0]].tobytes())
    leaf, data = leaves(a=tensor[1, 1])["a"]
    assert (leaf.shape, leaf.strides, data) == ((), None, raw[1, 1].tobytes())
    leaf, data = leaves(a=tensor[:0])["a"]
    assert (leaf.shape, leaf.strides, data) == ((0, 2), None, b"")


@pytest.mark.case("G3")
def test_the_sign_of_a_zero_and_the_payload_of_a_nan_are_bits() -> None:
    nan = torch.tensor([0x7FC00000, 0x7FC00001], dtype=torch.int32).view(torch.float32)
    assert same(read(a=nan), read(a=nan.clone()))
    assert not same(read(a=nan[:1]), read(a=nan[1:].clone()))
    zero = torch.tensor([0.0])
    assert torch.equal(zero, -zero)
    assert not same(read(a=zero), read(a=-zero))


@pytest.mark.case("G4")
def test_an_all_zero_tensor_equals_itself_and_no_other() -> None:
    assert same(read(a=torch.zeros(3)), read(a=torch.zeros(3)))
    assert not same(read(a=torch.zeros(3)), read(a=torch.zeros(3, dtype=torch.int32)))


@pytest.mark.case("G5")
def test_a_tensor_without_elements_has_its_shape() -> None:
    assert lines(a=torch.zeros(0, 3)) == ["a : float32[0,3]"]
    assert same(read(a=torch.zeros(0, 3)), read(a=torch.zeros(0, 3)))
    assert not same(read(a=torch.zeros(0, 3)), read(a=torch.zeros(0, 4)))


@pytest.mark.case("G8")
def test_channels_last_is_a_layout_of_the_same_logical_bytes() -> None:
    dense = torch.arange(2 * 3 * 4 * 5.0).reshape(2, 3, 4, 5)
    permuted = dense.to(memory_format=torch.channels_last)
    one, other = leaves(a=dense)["a"], leaves(a=permuted)["a"]
    assert one[1] == other[1] == dense.numpy().tobytes()
    assert (one[0].strides, other[0].strides) == (None, (60, 1, 15, 3))


@pytest.mark.case("G9")
def test_memory_in_common_is_named_at_the_later_path() -> None:
    weight = torch.zeros(4, 2)
    assert lines(a={"embed": weight, "half": weight[2:], "head": weight, "own": weight.clone()}, b=weight.view(-1)) == [
        "a : dict",
        "a embed: float32[4,2]",
        "a half: float32[2,2] shares=a/embed",
        "a head: float32[4,2] shares=a/embed",
        "a own: float32[4,2]",
        "b : float32[8] shares=a/embed",
    ]


@pytest.mark.parametrize(
    ("view", "real"),
    [
        (torch.tensor([1 + 2j, -3j]).conj(), torch.tensor([1 - 2j, 3j])),
        (torch.tensor([1 + 2j]).conj().imag, torch.tensor([-2.0])),
        (torch.tensor([[1 + 2j, 4j], [5, 6j]]).conj().t(), torch.tensor([[1 - 2j, 5], [-4j, -6j]])),
        (torch._neg_view(torch.tensor([1.0, -0.0])), torch.tensor([-1.0, 0.0])),
    ],
    ids=["conj", "imag", "adjoint", "neg"],
)
def test_a_lazy_view_counts_as_what_it_reads_as(view: Tensor, real: Tensor) -> None:
    assert view.is_conj() or view.is_neg()
    data = leaves(a=view)["a"][1]
    expected = view.resolve_conj().resolve_neg().contiguous()
    assert data == leaves(a=expected)["a"][1]
    assert torch.equal(expected, real)
    assert data != leaves(a=torch.zeros_like(expected))["a"][1]


def sparse(layout: torch.layout) -> Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # beta state
        dense = torch.tensor([[1.0, 0, 0, 2], [0, 3, 0, 0]])
        if layout in (torch.sparse_bsr, torch.sparse_bsc):
            return dense.to_sparse(layout=layout, blocksize=(1, 2))
        return dense.to_sparse(layout=layout)


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        (torch.sparse_coo, ["a : sparse_coo float32[2,4] coalesced", "a indices: int64[2,3]", "a values: float32[3]"]),
        (torch.sparse_csr, ["a : sparse_csr float32[2,4]", "a crow_indices: int64[3]", "a col_indices: int64[3]", "a values: float32[3]"]),
        (torch.sparse_csc, ["a : sparse_csc float32[2,4]", "a ccol_indices: int64[5]", "a row_indices: int64[3]", "a values: float32[3]"]),
        (
            torch.sparse_bsr,
            ["a : sparse_bsr float32[2,4]", "a crow_indices: int64[3]", "a col_indices: int64[3]", "a values: float32[3,1,2]"],
        ),
        (
            torch.sparse_bsc,
            ["a : sparse_bsc float32[2,4]", "a ccol_indices: int64[3]", "a row_indices: int64[3]", "a values: float32[3,1,2]"],
        ),
    ],
    ids=str,
)
def test_a_sparse_tensor_is_its_indices_and_values(layout: torch.layout, expected: list[str]) -> None:
    tensor = sparse(layout)
    assert lines(a=tensor) == expected
    other = sparse(layout)
    assert same(read(a=tensor), read(a=other))
    (other._values() if layout is torch.sparse_coo else other.values()).neg_()
    assert not same(read(a=tensor), read(a=other))


def test_an_uncoalesced_sparse_tensor_is_recorded_as_it_is() -> None:
    indices = torch.tensor([[1, 0, 1]])
    tensor = torch.sparse_coo_tensor(indices, torch.tensor([1.0, 2.0, 3.0]), (2,), check_invariants=True)
    assert lines(a=tensor)[0] == "a : sparse_coo float32[2]"
    assert not tensor.is_coalesced()
    assert not same(read(a=tensor), read(a=tensor.coalesce()))


@pytest.mark.filterwarnings("ignore")
def test_a_quantized_tensor_is_its_bytes_and_scales() -> None:
    values = torch.tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])
    tensor = torch.quantize_per_tensor(values, 0.1, 3, torch.qint8)
    assert lines(a=tensor) == [
        "a : quantized per_tensor_affine qint8[2,3]",
        "a values: int8[2,3]",
        "a scale: float",
        "a zero_point: int",
    ]
    assert leaves(a=tensor)["a/values"][1] == tensor.int_repr().numpy().tobytes()
    assert leaves(a=tensor.t())["a/values"][0].strides == (1, 3)
    shifted = torch.quantize_per_tensor(values + 0.1, 0.1, 2, torch.qint8)
    assert leaves(a=shifted)["a/values"][1] == leaves(a=tensor)["a/values"][1]
    assert not same(read(a=tensor), read(a=shifted))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", [torch.qint8, torch.quint8, torch.qint32], ids=str)
def test_a_tensor_quantized_by_channel_has_scales_zero_points_and_axis(dtype: torch.dtype) -> None:
    values = torch.arange(6.0).reshape(2, 3)

    def quantized(scale: float) -> Tensor:
        return torch.quantize_per_channel(values * scale, torch.tensor([0.5, scale]), torch.tensor([1, 2]), 0, dtype)

    assert [line.split(":")[0] for line in lines(a=quantized(1.0))] == ["a ", "a values", "a scales", "a zero_points", "a axis"]
    assert same(read(a=quantized(1.0)), read(a=quantized(1.0)))
    assert not same(read(a=quantized(1.0)), read(a=quantized(2.0)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", [torch.quint4x2, torch.quint2x4], ids=str)
@pytest.mark.parametrize("columns", [3, 4, 5])
def test_elements_that_share_a_byte_are_recorded_without_the_padding(dtype: torch.dtype, columns: int) -> None:
    def quantized(first: float) -> Tensor:
        values = torch.ones(1, columns)
        values[0, 0] = first
        tensor = torch.quantize_per_channel(values, torch.tensor([1.0]), torch.tensor([0.0]), 0, dtype)
        junk = torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage())
        bits = 4 if dtype is torch.quint4x2 else 2
        used = columns * bits
        if used % 8:
            junk[used // 8] |= 0xFF << used % 8 & 0xFF
        return tensor

    clean = leaves(a=quantized(1.0))["a/packed"][1]
    assert int.from_bytes(clean, "little") == sum(1 << index * (4 if dtype is torch.quint4x2 else 2) for index in range(columns))
    assert not same(read(a=quantized(1.0)), read(a=quantized(2.0)))


def test_every_quantized_dtype_is_covered() -> None:
    stored = [dtype for dtype in DTYPES if str(dtype).startswith(("torch.qint", "torch.quint"))]
    assert set(stored) == set(QUANTIZED)


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="needs oneDNN")  # type: ignore[no-untyped-call]
def test_an_mkldnn_tensor_is_its_dense_values() -> None:
    dense = torch.arange(6.0).reshape(2, 3)
    assert lines(a=dense.to_mkldnn()) == ["a : mkldnn float32[2,3]", "a dense: float32[2,3]"]
    assert leaves(a=dense.to_mkldnn())["a/dense"][1] == dense.numpy().tobytes()
    assert not same(read(a=dense.to_mkldnn()), read(a=dense))


@pytest.mark.filterwarnings("ignore")
def test_a_strided_nested_tensor_is_the_tensors_in_it() -> None:
    tensor = torch.nested.nested_tensor([torch.ones(2, 3), torch.zeros(1, 3)])
    assert lines(a=tensor) == ["a : nested float32 of 3 dimensions", "a 0: float32[2,3]", "a 1: float32[1,3]"]
    assert leaves(a=tensor)["a/0"][1] == np.ones((2, 3), np.float32).tobytes()
    other = torch.nested.nested_tensor([torch.ones(2, 3), torch.zeros(2, 3)])
    assert not same(read(a=tensor), read(a=other))


@pytest.mark.filterwarnings("ignore")
def test_a_jagged_nested_tensor_is_its_values_and_offsets() -> None:
    tensor = torch.nested.nested_tensor([torch.ones(2, 3), torch.zeros(1, 3)], layout=torch.jagged, requires_grad=True)
    assert lines(a=tensor) == ["a : jagged float32[2,*,3]", "a values: float32[3,3]", "a offsets: int64[3]"]
    assert lines(a=tensor.transpose(1, 2))[0] == "a : jagged float32[2,3,*]"
    other = torch.nested.nested_tensor([torch.ones(1, 3), torch.zeros(2, 3)], layout=torch.jagged)
    assert not same(read(a=tensor), read(a=other))


@pytest.mark.filterwarnings("ignore")
def test_a_masked_tensor_is_its_data_and_mask() -> None:
    data = torch.arange(3.0)
    one, other = masked_tensor(data, data > 0), masked_tensor(data, data > 1)
    assert lines(a=one) == ["a : masked float32[3]", "a data: float32[3]", "a mask: bool[3]"]
    assert not same(read(a=one), read(a=other))


class Weight(Tensor):
    """A subclass with memory of its own, and manners that a recorder must not trip over."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise AssertionError(f"the recorder called {func}")


class Pair(Tensor):
    """A wrapper subclass."""

    one: Tensor
    two: Tensor

    @staticmethod
    def __new__(cls, one: Tensor, two: Tensor, note: Any = None) -> Pair:
        made: Pair = Tensor._make_wrapper_subclass(cls, one.shape, dtype=one.dtype)
        return made

    def __init__(self, one: Tensor, two: Tensor, note: Any = None) -> None:
        self.one, self.two, self.note = one, two, note

    def __tensor_flatten__(self) -> tuple[list[str], Any]:
        return ["one", "two"], self.note

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        raise NotImplementedError(f"{func}")


def test_a_subclass_with_memory_is_its_class_and_that_memory() -> None:
    values = torch.arange(3.0)
    assert lines(a=values.as_subclass(Weight), b=values) == ["a : Weight", "a tensor: float32[3]", "b : float32[3] shares=a/tensor"]


def test_a_wrapper_subclass_is_its_inner_tensors_and_context() -> None:
    pair = Pair(torch.ones(2), torch.zeros(3, dtype=torch.int8), {"bits": 4, "requires_grad": False})
    assert lines(a=pair) == ["a : Pair float32[2]", "a one: float32[2]", "a two: int8[3]", "a context: dict", "a context/bits: int"]
    assert not same(read(a=pair), read(a=Pair(torch.ones(2), torch.ones(3, dtype=torch.int8), pair.note)))
    assert not same(read(a=pair), read(a=Pair(pair.one, pair.two, {"bits": 8})))


def test_a_parameter_is_the_tensor_it_is_whether_it_needs_a_gradient_or_not() -> None:
    values = torch.ones(2)
    assert same(read(a=nn.Parameter(values)), read(a=values))
    assert same(read(a=nn.Parameter(values, requires_grad=False)), read(a=values))


@pytest.mark.filterwarnings("ignore")
def test_a_distributed_tensor_is_its_local_bytes_placements_and_mesh(tmp_path: Any) -> None:
    if not torch.distributed.is_available():
        pytest.skip("torch was built without torch.distributed")
    if torch.__version__ < "2.5":
        from torch.distributed._tensor import Replicate, Shard, distribute_tensor  # type: ignore[attr-defined]
    else:
        from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    from torch.distributed.device_mesh import init_device_mesh

    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        mesh = init_device_mesh("cpu", (1,), mesh_dim_names=("dp",))
        values = torch.arange(6.0).reshape(2, 3)
        tensor = distribute_tensor(values, mesh, [Shard(0)])
        assert lines(a=tensor) == [
            "a : DTensor float32[2,3] (Shard(dim=0),) of ('dp',)",
            "a local: float32[2,3]",
            "a mesh: int32[1]",
        ]
        assert leaves(a=tensor)["a/local"][1] == values.numpy().tobytes()
        assert not same(read(a=tensor), read(a=distribute_tensor(values, mesh, [Replicate()])))
        assert same(read(a=nn.Parameter(tensor)), read(a=tensor))
    finally:
        torch.distributed.destroy_process_group()


def functional() -> Tensor:
    return torch._to_functional_tensor(torch.ones(2))


def fake() -> Tensor:
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode():
        return torch.ones(2)


def batched() -> Tensor:
    seen: list[Tensor] = []
    torch.func.vmap(lambda row: seen.append(row) or row)(torch.ones(2, 2))  # type: ignore[func-returns-value]
    return seen[0]


def freed() -> Tensor:
    tensor = torch.ones(4)
    tensor.untyped_storage().resize_(0)
    return tensor


def shrunk() -> Tensor:
    tensor = torch.ones(4)
    tensor.untyped_storage().resize_(8)
    return tensor


def unnamed() -> Tensor:
    class Opaque(Pair):
        __tensor_flatten__ = None  # type: ignore[assignment]

    return Opaque(torch.ones(2), torch.ones(2))


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: torch.empty(2, device="meta"), "meta device cannot be recorded: it has a shape and no values"),
        (lambda: torch.empty(0, device="meta"), "meta device"),
        (fake, "FakeTensor cannot be recorded: .* outside FakeTensorMode"),
        (functional, "storage holds nothing"),
        (batched, "without storage"),
        (freed, "storage holds nothing"),
        (shrunk, "16 bytes whose storage has 8"),
        (unnamed, "Opaque cannot be recorded: .*__tensor_flatten__"),
        (nn.UninitializedParameter, "UninitializedParameter cannot be recorded: .*run one forward"),
        (nn.UninitializedBuffer, "UninitializedBuffer cannot be recorded: .*run one forward"),
        (lambda: torch.empty(2, dtype=torch.qint8), "without a quantizer"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_a_tensor_without_values_is_refused_with_path_type_and_advice(make: Callable[[], Tensor], told: str) -> None:
    with pytest.raises(Refused, match=rf"^model/w: .*{told}"):
        read(model={"w": make()})


def test_reading_keeps_no_graph_and_no_tensor_alive() -> None:
    class Kept(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, weight: Tensor) -> Tensor:
            ctx.token = Token()
            tokens.append(weakref.ref(ctx.token))
            return weight * 2

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Tensor:
            return gradient * 2

    class Token:
        pass

    tokens: list[weakref.ref[Any]] = []
    plan = Plan()
    weight = torch.ones(3, requires_grad=True)
    loss = Kept.apply(weight)  # type: ignore[no-untyped-call]
    snapshot = plan.read({"loss": loss, "weight": weight}).snapshot(1, keep=False)
    watched = [weakref.ref(loss), weakref.ref(weight), *tokens]
    assert all(reference() is not None for reference in watched)
    del loss, weight
    gc.collect()
    assert snapshot.leaves
    assert [reference() for reference in watched] == [None, None, None]


def test_scalars_of_a_quantizer_are_exact() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tensor = torch.quantize_per_tensor(torch.ones(1), 0.1, 3, torch.quint8)
    assert texts(a=tensor) == {"a/scale": "0x1.999999999999ap-4 (0.1)", "a/zero_point": "3"}
