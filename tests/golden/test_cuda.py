"""A state on a CUDA device is recorded like the same state on the host, bit by bit, and nothing of the run is changed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.masked import masked_tensor

from golden import profile
from golden.generators import states
from golden.grads import gradients
from golden.leaf import Snapshot
from golden.plan import Plan
from golden.recorder import Recorder
from golden.staging import ROUND, Staging
from golden.writer import Writer
from tests.golden.goldens import FACTS, contents
from tests.golden.prepared import report
from tests.golden.states import leaves, lines, read, same
from tests.golden.test_observer import Residual
from tests.golden.test_tensors import PLAIN, Pair, Weight, filled

pytestmark = pytest.mark.cuda

ROOT = Path(__file__).parent.parent.parent
HOST, DEVICE = torch.device("cpu"), torch.device("cuda")


def alike(make: Callable[[torch.device], Any], plan: Plan | None = None) -> None:
    """A state that is made on the device has the leaves, digests and bytes of the one that is made on the host."""
    there, here = read(plan, state=make(DEVICE)), read(state=make(HOST))
    assert [leaf.line() for leaf in there.leaves] == [leaf.line() for leaf in here.leaves]
    assert there.digests.tolist() == here.digests.tolist()
    assert there.data is not None
    assert here.data is not None
    assert list(map(bytes, there.data)) == list(map(bytes, here.data))


def of_bytes(dtype: torch.dtype, device: torch.device, change: int = 0) -> Tensor:
    """The tensor [3, 2] of a dtype that tests on the host use, brought over byte by byte: some dtypes have no copy."""
    origin = filled(dtype, 3, 2, change=change)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # complex32 is experimental
        made = torch.empty((3, 2), dtype=dtype, device=device)
    raw = torch.empty(0, dtype=torch.uint8, device=device).set_(made.untyped_storage())
    raw.copy_(torch.empty(0, dtype=torch.uint8).set_(origin.untyped_storage())[: raw.numel()])
    return made


@pytest.mark.parametrize("dtype", PLAIN, ids=str)
def test_every_dtype_in_every_layout(dtype: torch.dtype) -> None:
    def state(device: torch.device) -> dict[str, Tensor]:
        tensor = of_bytes(dtype, device)
        views = {"t": tensor.t(), "column": tensor[:, 1], "expanded": tensor[0].expand(2, 2), "0d": tensor[1, 1], "empty": tensor[:0]}
        return {"dense": tensor, **views}

    plan = Plan()
    for _ in range(2):
        alike(state, plan)
    assert not same(read(plan, state=state(DEVICE)), read(plan, state={**state(DEVICE), "dense": of_bytes(dtype, DEVICE, change=1)}))


LAZY: dict[str, Callable[[Tensor], Tensor]] = {
    "conj": lambda z: z.conj(),
    "imag": lambda z: z.conj().imag,
    "adjoint": lambda z: z.conj().t(),
    "neg": lambda z: torch._neg_view(z.real),
    "part": lambda z: z.conj()[:, 1:],
}


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
@pytest.mark.parametrize("view", LAZY.values(), ids=LAZY)
def test_a_lazy_view_counts_as_what_it_reads_as(view: Callable[[Tensor], Tensor], dtype: torch.dtype) -> None:
    def values(device: torch.device) -> Tensor:
        return torch.tensor([[1 + 2j, -0.0j, 3], [5, 6j, 7 - 1j]], dtype=dtype).to(device)

    there = view(values(DEVICE))
    assert there.is_conj() or there.is_neg()
    alike(lambda device: view(values(device)))
    assert leaves(a=there)["a"][1] == leaves(a=there.resolve_conj().resolve_neg().cpu().contiguous())["a"][1]
    assert not same(read(a=there), read(a=there.resolve_conj().resolve_neg() + 1))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc], ids=str)
def test_a_sparse_tensor(layout: torch.layout) -> None:
    def made(device: torch.device) -> Tensor:
        dense = torch.tensor([[1.0, 0, 0, 2], [0, 3, 0, 0]], device=device)
        return dense.to_sparse(layout=layout, blocksize=(1, 2) if layout in (torch.sparse_bsr, torch.sparse_bsc) else None)

    alike(made)
    other = made(DEVICE)
    (other._values() if layout is torch.sparse_coo else other.values()).neg_()
    assert not same(read(a=made(DEVICE)), read(a=other))


@pytest.mark.filterwarnings("ignore")
def test_an_uncoalesced_sparse_tensor_is_recorded_as_it_is() -> None:
    def made(device: torch.device) -> Tensor:
        indices, values = torch.tensor([[1, 0, 1]], device=device), torch.tensor([1.0, 2.0, 3.0], device=device)
        return torch.sparse_coo_tensor(indices, values, (2,), check_invariants=True)

    alike(made)
    assert not same(read(a=made(DEVICE)), read(a=made(DEVICE).coalesce()))


QUANTIZERS: dict[str, Callable[[Tensor, torch.dtype], Tensor]] = {
    "tensor": lambda values, dtype: torch.quantize_per_tensor(values, 0.1, 3, dtype),
    "channel": lambda values, dtype: torch.quantize_per_channel(
        values, torch.tensor([0.5, 0.25], device=values.device), torch.tensor([1, 2], device=values.device), 0, dtype
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", [torch.qint8, torch.quint8, torch.qint32], ids=str)
@pytest.mark.parametrize("quantizer", QUANTIZERS.values(), ids=QUANTIZERS)
def test_a_quantized_tensor(quantizer: Callable[[Tensor, torch.dtype], Tensor], dtype: torch.dtype) -> None:
    values = torch.arange(6.0).reshape(2, 3)
    try:
        quantizer(values.to(DEVICE), dtype)
    except RuntimeError as error:
        pytest.skip(f"torch {torch.__version__} cannot quantize so on CUDA: {error}")
    alike(lambda device: quantizer(values.to(device), dtype))
    assert not same(read(a=quantizer(values.to(DEVICE), dtype)), read(a=quantizer(values.to(DEVICE) + 1, dtype)))


@pytest.mark.filterwarnings("ignore")
def test_nested_and_masked_tensors() -> None:
    def state(device: torch.device) -> dict[str, Any]:
        pieces = [torch.ones(2, 3, device=device), torch.arange(3.0, device=device).reshape(1, 3)]
        data = torch.arange(3.0, device=device)
        return {
            "strided": torch.nested.nested_tensor(pieces),
            "jagged": torch.nested.nested_tensor(pieces, layout=torch.jagged),
            "masked": masked_tensor(data, data > 0),
        }

    alike(state)
    changed = state(DEVICE)
    changed["jagged"].values()[0] = 7
    assert not same(read(state=state(DEVICE)), read(state=changed))


def test_tensors_of_a_subclass() -> None:
    def state(device: torch.device) -> dict[str, Any]:
        values = torch.arange(6.0, device=device).reshape(2, 3)
        pair = Pair(values[0].clone(), torch.ones(2, dtype=torch.int8, device=device), {"bits": 4})
        return {"own": values.as_subclass(Weight), "view": values.t().as_subclass(Weight), "wrapper": pair, "tied": values}

    alike(state)
    assert "shares=state/own/tensor" in lines(state=state(DEVICE))[-1]
    changed = state(DEVICE)
    changed["wrapper"].two.add_(1)
    assert not same(read(state=state(DEVICE)), read(state=changed))


def split() -> nn.Sequential:
    """A network whose first half is on the host and whose second is on the device."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 4), nn.BatchNorm1d(4))
    model[2].to(DEVICE)
    model[3].to(DEVICE)
    return model


def phases(model: nn.Sequential) -> dict[str, Any]:
    """The network, its gradients, and one subclass that holds a tensor of either device."""
    one, two = (layer.weight for layer in model if isinstance(layer, nn.Linear))
    return {"model": model, "grads": gradients(model), "mixed": Pair(one, two)}


def test_a_module_on_two_devices_has_the_digests_of_one_on_the_host() -> None:
    model, twin = split(), split().cpu()
    for each in (model, twin):
        for parameter in each.parameters():
            parameter.grad = torch.full_like(parameter, 0.5)
    assert {tensor.device.type for tensor in phases(model)["grads"].values()} == {HOST.type, DEVICE.type}
    before = read(**phases(model))
    assert same(before, read(**phases(twin)))
    with torch.no_grad():
        list(model.parameters())[-1].add_(1)
    assert not same(before, read(**phases(model)))


def test_a_module_that_moves_between_the_devices_keeps_its_leaves() -> None:
    plan, model = Plan(), split().cpu()
    before = read(plan, model=model)
    assert same(before, read(plan, model=model.to(DEVICE)))
    assert same(before, read(plan, model=model.cpu()))


def test_memory_in_common_is_named_on_a_device_and_never_across_devices() -> None:
    weight = torch.arange(8.0, device=DEVICE).reshape(4, 2)
    found = lines(a={"embed": weight, "half": weight[2:], "own": weight.clone(), "host": weight.cpu()})
    assert found[1:] == ["a embed: float32[4,2]", "a half: float32[2,2] shares=a/embed", "a own: float32[4,2]", "a host: float32[4,2]"]


def test_generators_of_the_device() -> None:
    generator = torch.Generator(DEVICE)
    generator.manual_seed(3)
    assert lines(g=generator)[0] == "g : Generator cuda"
    before, phase = read(g=generator), read(rng=states(DEVICE))
    assert {"rng/torch", "rng/cuda"} <= {leaf.full for leaf in phase.leaves}
    saved = generator.get_state()
    torch.rand(1, generator=generator, device=DEVICE)
    torch.rand(1, device=DEVICE)
    assert not same(before, read(g=generator))
    assert not same(phase, read(rng=states(DEVICE)))
    generator.set_state(saved)
    assert same(before, read(g=generator))


def test_reading_a_generator_draws_nothing() -> None:
    torch.cuda.manual_seed(1)
    bare = torch.rand(4, device=DEVICE).tolist()
    torch.cuda.manual_seed(1)
    states(DEVICE)
    assert torch.rand(4, device=DEVICE).tolist() == bare


def test_the_environment_names_gpu_capability_and_driver() -> None:
    found = report(device="cuda")["environment"]
    facts = torch.cuda.get_device_properties(0)
    assert found["gpu"] == {
        "name": facts.name,
        "capability": f"{facts.major}.{facts.minor}",
        "multiprocessors": facts.multi_processor_count,
    }
    assert found["hardware"] == re.sub(r"[^a-z0-9]+", "-", facts.name.lower().removeprefix("nvidia ")).strip("-")
    assert found["cuda"]["runtime"] == torch.version.cuda
    asked = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], capture_output=True, text=True)
    assert found["cuda"]["driver"] == asked.stdout.split()[0]


def train(record: Recorder | None, scaled: bool) -> tuple[list[str], list[int]]:
    """Every bit of a short mixed-precision training on the device, step by step, and the device's memory after each step."""
    torch.manual_seed(1)
    model = Residual().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, fused=True)
    scaler = torch.amp.GradScaler("cuda", init_scale=1024.0, enabled=scaled)
    bits, memory = [], []
    for _ in range(4):
        images = torch.randn(4, 1, 8, 8).to(DEVICE) + torch.rand(1, device=DEVICE)
        with torch.autocast("cuda", dtype=torch.float16 if scaled else torch.bfloat16):
            loss = nn.functional.cross_entropy(model(images), torch.arange(4, device=DEVICE) % 3)
        scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
        scaler.step(optimizer)
        scaler.update()
        if record:
            record(loss=loss, grads=gradients(model), scaler=scaler, optimizer=optimizer, model=model)
        everything = [loss, *model.state_dict().values(), *(p.grad for p in model.parameters() if p.grad is not None)]
        everything += [value for state in optimizer.state.values() for value in state.values()]
        bits += [tensor.detach().cpu().numpy().tobytes().hex() for tensor in everything]
        bits += [torch.cuda.get_rng_state().numpy().tobytes().hex(), str(scaler.state_dict())]
        memory += [torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated()]
        optimizer.zero_grad()
    return bits, memory


def observed(scaled: bool) -> dict[str, Any]:
    """Bits and memory of runs with and without a recorder, and of one that a recorder disturbs; for a process of its own."""
    from golden.seeding import prepare

    prepare(0, "portable")
    train(None, scaled)  # handles, workspaces and the caching allocator
    seen: list[Snapshot] = []
    bare, again = train(None, scaled), train(None, scaled)
    recorded = train(Recorder(seen.append, steps=4, device="cuda", store="digest"), scaled)
    disturbed = train(Recorder(lambda snapshot: torch.rand(1, device="cuda"), steps=4, device="cuda"), scaled)
    return {"bare": bare, "again": again, "recorded": recorded, "disturbed": disturbed, "leaves": [leaf.full for leaf in seen[0].leaves]}


@pytest.mark.parametrize("scaled", [False, True], ids=["bfloat16", "float16 with a GradScaler"])
def test_a_training_has_the_same_bits_and_memory_with_and_without_the_recorder(scaled: bool) -> None:
    program = f"import json; from tests.golden import test_cuda; print(json.dumps(test_cuda.observed({scaled})))"
    path = os.pathsep.join(filter(None, [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
    environment = {**profile.environment(os.environ, "portable", "cuda", 0), "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["recorded"] == found["bare"] == found["again"]
    assert found["disturbed"][0] != found["bare"][0]
    assert {"loss", "rng/cuda", "optimizer/stem.weight/exp_avg"} <= set(found["leaves"])
    assert ("scaler/scale" in found["leaves"]) is scaled


def test_a_state_of_several_rounds_is_staged_in_one_pinned_buffer() -> None:
    sizes = [ROUND // 8 + 1, ROUND // 2, ROUND + 4096, 3, ROUND // 4]  # in bytes: the third alone is more than a round
    state = [torch.arange(size // 2, dtype=torch.int16) for size in sizes] + [torch.arange(size // 4, dtype=torch.int32) for size in sizes]
    there = [tensor.to(DEVICE) for tensor in state]
    staging = Staging()
    plan = Plan(staging=staging)
    for _ in range(2):
        digests = plan.read({"state": there}).snapshot(1, keep=False).digests
        assert (digests == Plan().read({"state": state}).snapshot(1, keep=False).digests).all()
    assert staging._buffer.is_pinned()
    assert ROUND < staging._buffer.numel() <= max(sizes) + 4096
    there[-1][-1] += 1
    assert (plan.read({"state": there}).snapshot(1, keep=False).digests != digests).any(axis=1).sum() == 1


@pytest.mark.parametrize("most", [1, 64, 1000])
def test_rounds_of_any_size_read_the_same(most: int) -> None:
    base = torch.arange(1000, dtype=torch.int32)
    state = {"all": base, "part": base[3:5], "odd": base[::3], "permuted": base.reshape(10, 100).t(), "bytes": base.view(torch.uint8)[1:6]}
    there = {key: value.to(DEVICE) for key, value in state.items()}
    there["odd"], there["permuted"] = there["all"][::3], there["all"].reshape(10, 100).t()
    there["part"], there["bytes"] = there["all"][3:5], there["all"].view(torch.uint8)[1:6]
    assert same(read(Plan(staging=Staging(most)), state=there), read(state=state))


def test_work_on_another_stream_is_waited_for() -> None:
    tensor = torch.zeros(1 << 22, device=DEVICE)
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(300):
            tensor.add_(1)
        found = read(a=tensor)
    assert same(found, read(a=torch.full((1 << 22,), 300.0)))


def test_a_golden_of_the_device_has_the_files_of_one_of_the_host(tmp_path: Path) -> None:
    for device in (HOST, DEVICE):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)).to(device)
        writer = Writer(tmp_path / device.type)
        record = Recorder(writer.add, steps=1, store="full")
        np.random.seed(0)
        record(model=model)
        writer.finish(**FACTS)
    here, there = (contents(tmp_path / device.type) for device in (HOST, DEVICE))
    assert here.pop("manifest.json") == there.pop("manifest.json")
    assert here == there
    assert "step-0001.safetensors" in here
