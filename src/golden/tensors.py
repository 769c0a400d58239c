"""Tensors: which are plain, what the others consist of, and which are refused.

A plain tensor is one leaf: strided memory of any dtype that torch has. Everything else is a container whose parts are leaves below it:

================================  =====================================  ===========================================================
what                              container                              parts
================================  =====================================  ===========================================================
sparse                            sparse_coo float32[3,4] coalesced      indices, values; crow_indices or ccol_indices and so on
quantized                         quantized per_tensor_affine qint8[2]   values (its bytes), scale, zero_point; scales, zero_points, axis
quantized, several in a byte      quantized ... quint4x2[6]              packed, scales, zero_points, axis
mkldnn                            mkldnn float32[3,4]                    dense (the blocked bytes are nobody's business)
nested, strided                   nested float32 of 3 dimensions         0, 1, 2: its tensors
nested, jagged                    jagged float32[2,*,3]                  values, offsets, lengths; not the cached lengths
masked                            masked float32[3]                      data, mask
DTensor                           DTensor float32[8,4] (Shard(dim=0),)   local, mesh
a subclass with inner tensors     TwoTensor float32[3]                   what __tensor_flatten__ names, context
a subclass with memory            Weight                                 tensor
================================  =====================================  ===========================================================

requires_grad, grad_fn, hooks and attributes that were set on a tensor are no state.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias, cast, runtime_checkable

import torch
from torch import Tensor
from torch._subclasses import FakeTensor
from torch.masked import MaskedTensor
from torch.nn import Parameter
from torch.nn.parameter import is_lazy

from golden.errors import Refused
from golden.memory import reach

Parts: TypeAlias = "tuple[str, Mapping[Any, Any]]"  # type of the container, and what is in it

_PACKED = {torch.quint4x2: 2, torch.quint2x4: 4}  # elements in a byte
_STORED = {torch.qint8: torch.int8, torch.quint8: torch.uint8, torch.qint32: torch.int32}
_COMPRESSED = {torch.sparse_csr: "row", torch.sparse_bsr: "row", torch.sparse_csc: "column", torch.sparse_bsc: "column"}
_NO_MEMORY = "it has no memory of its own here: materialize it, or record a clone()"


@runtime_checkable
class Flattened(Protocol):
    """A wrapper subclass that names its inner tensors, as torch.compile needs it."""

    def __tensor_flatten__(self) -> tuple[Sequence[str], Any]:
        """Names of the attributes that hold inner tensors, and everything else."""
        ...


def name(dtype: torch.dtype) -> str:
    """Name of a dtype without ``torch.``."""
    return str(dtype).removeprefix("torch.")


def plain(tensor: Tensor) -> bool:
    """Whether a tensor is strided memory and nothing else. Looks at no memory, and runs no code of a subclass."""
    if type(tensor) is not Tensor and type(tensor) is not Parameter:
        return False
    return tensor.layout is torch.strided and not (tensor.is_quantized or tensor.is_nested or tensor.is_mkldnn or tensor.is_meta)


def check(tensor: Tensor, path: str) -> None:
    """Refuses a plain tensor whose memory is not there.

    Raises:
        Refused: for what vmap, functionalization, a freed or a shrunk storage leave.
    """
    try:
        address = tensor.data_ptr()
        available = tensor.untyped_storage().nbytes() - tensor.storage_offset() * tensor.element_size()
    except (RuntimeError, NotImplementedError) as error:
        raise Refused(path, "a tensor without storage", _NO_MEMORY) from error
    _, span = reach(tensor.shape, [stride * tensor.element_size() for stride in tensor.stride()], tensor.element_size())
    if span and not address and tensor.device.type in ("cpu", "cuda"):
        raise Refused(path, "a tensor whose storage holds nothing (functional, zero or freed)", _NO_MEMORY)
    if span > available:
        what = f"a tensor of {span} bytes whose storage has {max(available, 0)}"
        raise Refused(path, what, "its storage was resized: record it while it is whole")


def parts(tensor: Tensor, path: str) -> Parts:
    """What a tensor that is not plain consists of.

    Raises:
        Refused: for a tensor that holds no values.
    """
    if is_lazy(tensor):
        raise Refused(path, type(tensor).__name__, "it has no shape yet: run one forward before recording it")
    if isinstance(tensor, FakeTensor):
        raise Refused(path, "FakeTensor", "it has a shape and no values: record real tensors, outside FakeTensorMode")
    with torch.no_grad():
        return _parts(tensor, path)


def _parts(tensor: Tensor, path: str) -> Parts:
    if type(tensor) is not Tensor and type(tensor) is not Parameter:
        return _subclass(tensor, path)
    if tensor.is_meta:
        raise Refused(path, "a tensor on the meta device", "it has a shape and no values: materialize it with to_empty() and initialize it")
    if tensor.is_nested:
        pieces = tensor.detach().unbind()
        return f"nested {name(tensor.dtype)} of {tensor.dim()} dimensions", {str(index): piece for index, piece in enumerate(pieces)}
    if tensor.is_quantized:
        return _quantized(tensor, path)
    if tensor.is_mkldnn:
        return f"mkldnn {_described(tensor)}", {"dense": tensor.to_dense()}
    if tensor.layout is torch.sparse_coo:
        coalesced = " coalesced" if tensor.is_coalesced() else ""
        return f"sparse_coo {_described(tensor)}{coalesced}", {"indices": tensor._indices(), "values": tensor._values()}
    if tensor.layout in _COMPRESSED:
        return _compressed(tensor)
    raise Refused(path, f"a tensor of layout {tensor.layout}", "record what it consists of")


def _described(tensor: Tensor) -> str:
    """``float32[3,4]``, with ``*`` for a dimension of no one size."""
    with torch._C.DisableTorchFunctionSubclass():
        sizes = ",".join(str(size) if isinstance(size, int) else "*" for size in tensor.shape)
        return f"{name(tensor.dtype)}[{sizes}]"


def _compressed(tensor: Tensor) -> Parts:
    by_row = _COMPRESSED[tensor.layout] == "row"
    outer, inner = ("crow_indices", "col_indices") if by_row else ("ccol_indices", "row_indices")
    indices = (tensor.crow_indices(), tensor.col_indices()) if by_row else (tensor.ccol_indices(), tensor.row_indices())
    layout = str(tensor.layout).removeprefix("torch.")
    return f"{layout} {_described(tensor)}", {outer: indices[0], inner: indices[1], "values": tensor.values()}


def _quantized(tensor: Tensor, path: str) -> Parts:
    try:
        scheme = tensor.qscheme()
    except RuntimeError as error:
        what = f"a {name(tensor.dtype)} tensor without a quantizer"
        raise Refused(path, what, "make it by torch.quantize_per_tensor or torch.quantize_per_channel") from error
    values = {"packed": _packed(tensor, path)} if tensor.dtype in _PACKED else {"values": _stored(tensor)}
    if scheme in (torch.per_tensor_affine, torch.per_tensor_symmetric):
        scales: dict[str, Any] = {"scale": tensor.q_scale(), "zero_point": tensor.q_zero_point()}
    else:
        scales = {
            "scales": tensor.q_per_channel_scales(),
            "zero_points": tensor.q_per_channel_zero_points(),
            "axis": tensor.q_per_channel_axis(),
        }
    return f"quantized {str(scheme).removeprefix('torch.')} {_described(tensor)}", {**values, **scales}


def _stored(tensor: Tensor) -> Tensor:
    """The integers of a quantized tensor, in its own memory and layout."""
    integers = torch.empty(0, dtype=_STORED[tensor.dtype], device=tensor.device)
    return integers.set_(tensor.untyped_storage(), tensor.storage_offset(), tensor.size(), tensor.stride())


def _packed(tensor: Tensor, path: str) -> Tensor:
    """Copy of the bytes of a tensor with several elements in a byte, uint8 [bytes], padding cleared."""
    if tensor.storage_offset() or not tensor.is_contiguous():
        raise Refused(path, f"a {name(tensor.dtype)} tensor that is a view", "record a clone() of it")
    each = _PACKED[tensor.dtype]
    whole = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())
    packed = whole[: math.ceil(tensor.numel() / each)].clone()
    used = tensor.numel() % each
    if used:
        packed[-1] &= (1 << used * 8 // each) - 1
    return packed


def _subclass(tensor: Tensor, path: str) -> Parts:
    typed = cast("Any", tensor)
    with torch._C.DisableTorchFunctionSubclass():
        layout = tensor.layout
    if isinstance(tensor, MaskedTensor):
        return f"masked {_described(tensor)}", {"data": typed.get_data(), "mask": typed.get_mask()}
    if layout is torch.jagged:
        inner = {"values": typed.values(), "offsets": typed.offsets(), "lengths": typed.lengths()}
        return f"jagged {_described(tensor)}", {key: value for key, value in inner.items() if value is not None}
    if any(base.__name__ == "DTensor" and base.__module__.startswith("torch.distributed.") for base in type(tensor).__mro__):
        return _distributed(tensor)
    if isinstance(tensor, Flattened):
        return _flattened(tensor)
    with torch._C.DisableTorchFunctionSubclass():
        return type(tensor).__name__, {"tensor": _bare(tensor, path)}


def _bare(tensor: Tensor, path: str) -> Tensor:
    """The memory of a tensor without its class, whose code is not asked."""
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_conj() or tensor.is_neg():
        return tensor.as_subclass(Tensor)
    if tensor.numel() and not tensor.data_ptr():
        advice = "it wraps tensors that it does not name: give it __tensor_flatten__, or record what it holds"
        raise Refused(path, type(tensor).__name__, advice)
    memory = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    return memory.set_(tensor.untyped_storage(), tensor.storage_offset(), tensor.size(), tensor.stride())


def _distributed(tensor: Tensor) -> Parts:
    distributed = cast("Any", tensor)  # the class is another module's in torch 2.4
    mesh = distributed.device_mesh
    local = distributed.to_local()
    return f"DTensor {_described(tensor)} {distributed.placements} of {mesh.mesh_dim_names}", {"local": local, "mesh": mesh.mesh}


def _flattened(tensor: Tensor) -> Parts:
    names, context = cast("Flattened", tensor).__tensor_flatten__()
    if isinstance(context, Mapping):
        context = {key: value for key, value in context.items() if key != "requires_grad"}
    inner = {attribute: getattr(tensor, attribute) for attribute in names}
    return f"{type(tensor).__name__} {_described(tensor)}", inner if context is None else {**inner, "context": context}
