"""What the same value is: G2 to G4, G25 and G28."""

from __future__ import annotations

import math
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from gate import typed
from gate.diff import diff
from golden.recorder import Recorder, gradients
from tests.cases.recordings import differences, kinds, only, record, state

FLOATS = {torch.float16: torch.int16, torch.bfloat16: torch.int16, torch.float32: torch.int32, torch.float64: torch.int64}


def train(record: Recorder, bump: Any = lambda step, loss: loss) -> None:
    """Three steps of a linear layer; `bump` may change what is recorded of the loss."""
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(1, record.steps + 1):
        loss: Tensor = model(torch.randn(3, 4)).square().mean()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        record(loss=bump(step, loss.detach()), model=model)
        optimizer.zero_grad()


@pytest.mark.case("G2")
@pytest.mark.parametrize("scalar", [False, True], ids=["tensor", "float"])
def test_a_loss_one_ulp_off_is_drift(tmp_path: Path, scalar: bool) -> None:
    """Five printed decimals see no difference; the comparison sees one element, one ULP apart, at its step, and nothing else."""
    printed: list[str] = []

    def bumped(by: float) -> Any:
        def bump(step: int, loss: Tensor) -> Any:
            found = torch.nextafter(loss, torch.tensor(by)) if step == 2 and by else loss
            printed.append(f"{found.item():.5f}")
            return found.item() if scalar else found

        return bump

    golden, again, off = (
        record(tmp_path / name, lambda recorder, by=by: train(recorder, bumped(by)), steps=3)  # type: ignore[misc]
        for name, by in (("golden", 0.0), ("again", 0.0), ("off", math.inf))
    )
    assert printed[:3] == printed[3:6] == printed[6:]
    assert differences(golden, again) == ()
    found = only(golden, off)
    assert (found.step, found.path, found.kind.value) == (2, "loss", "value" if scalar else "bits")
    assert (found.differing, found.elements, found.max_ulp, found.index) == ((None,) * 4 if scalar else (1, 1, 1, ()))
    assert found.expected != found.actual


def flipped(tensor: Tensor, bits: int) -> Tensor:
    """The tensor with some bits of its first element turned."""
    found = tensor.clone()
    found.view(FLOATS[tensor.dtype])[0] ^= bits
    return found


@pytest.mark.case("G3")
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_signs_of_zeros_and_payloads_of_nans_are_bits(tmp_path: Path, dtype: torch.dtype) -> None:
    """The sign of a zero that flips is drift, a NaN that nobody touches is none, and another NaN is drift again."""
    zero, nan = torch.zeros(2, dtype=dtype), torch.full((2,), math.nan, dtype=dtype)
    minus, other = -zero, flipped(nan, 1)
    assert torch.equal(zero, minus)
    assert other.isnan().all()
    golden = state(tmp_path / "golden", zero=zero, nan=nan)
    assert differences(golden, state(tmp_path / "again", zero=zero.clone(), nan=nan.clone())) == ()
    sign = only(golden, state(tmp_path / "minus", zero=minus, nan=nan))
    assert (sign.path, sign.kind.value, sign.differing, sign.index) == ("zero", "bits", 2, (0,))
    assert (int(sign.expected or "", 16), int(sign.actual or "", 16)) == (0, 1 << (8 * dtype.itemsize - 1))
    payload = only(golden, state(tmp_path / "payload", zero=zero, nan=other))
    assert (payload.path, payload.kind.value, payload.differing, payload.max_ulp) == ("nan", "bits", 1, None)


@pytest.mark.case("G3")
def test_signs_of_zeros_and_payloads_of_nans_count_in_scalars(tmp_path: Path) -> None:
    (other,) = struct.unpack("<d", struct.pack("<Q", 0x7FF8_0000_0000_0001))
    golden = state(tmp_path / "golden", zero=0.0, nan=math.nan)
    assert differences(golden, state(tmp_path / "again", zero=0.0, nan=math.nan)) == ()
    assert kinds(golden, state(tmp_path / "other", zero=-0.0, nan=other)) == [("value", "zero"), ("value", "nan")]


@pytest.mark.case("G4")
def test_an_all_zero_state_is_the_same_as_itself(tmp_path: Path) -> None:
    """Weights, gradients, momenta and loss of zero are identical; the smallest number there is is one ULP from zero, and drift."""

    def zeros(recorder: Recorder, value: float = 0.0) -> None:
        model = nn.Linear(3, 2)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.zero_()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        for _ in range(recorder.steps):
            loss = model(torch.zeros(4, 3)).square().mean()
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                model.bias[1] += value
            recorder(loss=loss, grads=gradients(model), optimizer=optimizer, model=model)

    golden = record(tmp_path / "golden", zeros, steps=2)
    content = golden.bytes(2, "optimizer/weight/momentum_buffer")
    assert content is not None
    assert content.tobytes() == bytes(24)
    assert differences(golden, record(tmp_path / "again", zeros, steps=2)) == ()
    off = record(tmp_path / "off", lambda recorder: zeros(recorder, 2.0**-149), steps=1)
    found = differences(record(tmp_path / "one", zeros, steps=1), off)
    assert [(each.path, each.differing, each.max_ulp, each.index) for each in found] == [("model/bias", 1, 1, (1,))]


@pytest.mark.case("G25")
def test_numbers_are_kept_exactly(tmp_path: Path) -> None:
    """What is recorded reads back as the very double, and two that print alike in fifteen digits are two."""
    numbers = [float(number) for number in np.random.default_rng(0).standard_normal(50)] + [0.1 + 0.2, 5e-324, 1e308, -0.0]
    golden = state(tmp_path / "golden", numbers=numbers, tensor=torch.tensor(numbers, dtype=torch.float64))
    texts = [golden.text(1, f"numbers/{index}") or "" for index in range(len(numbers))]
    read = [float.fromhex(text.split(" ")[0]) for text in texts]
    assert struct.pack(f"<{len(read)}d", *read) == struct.pack(f"<{len(read)}d", *numbers)
    content = golden.bytes(1, "tensor")
    assert content is not None
    assert content.tobytes() == struct.pack(f"<{len(numbers)}d", *numbers)
    one, other = state(tmp_path / "one", lr=0.1 + 0.2), state(tmp_path / "other", lr=0.3)
    assert f"{0.1 + 0.2:.15f}" == f"{0.3:.15f}"
    found = only(one, other)
    assert (found.kind.value, found.expected, found.actual) == (
        "value", "0x1.3333333333334p-2 (0.30000000000000004)", "0x1.3333333333333p-2 (0.3)"
    )  # fmt: skip


@pytest.mark.case("G28")
@pytest.mark.parametrize("kind", ["tensor", "array"])
def test_tensors_never_go_through_deepdiff(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """With deepdiff out of reach, arrays with NaN and -0.0 are compared, and rightly; settings, which do need it, are not."""
    monkeypatch.setitem(sys.modules, "deepdiff", None)
    with pytest.raises(ImportError):
        typed.changes({"steps": 1}, {"steps": 2})
    values = np.array([math.nan, 0.0, 1.0], np.float32)
    other = np.array([math.nan, -0.0, 1.0], np.float32)
    wrap: Any = torch.from_numpy if kind == "tensor" else np.copy
    golden, again, off = (
        state(tmp_path / name, value=wrap(array)) for name, array in (("golden", values), ("again", values.copy()), ("off", other))
    )
    assert differences(golden, again) == ()
    assert diff(golden.folder, again.folder).verdict.value == "identical"
    found = only(golden, off)
    assert (found.differing, found.index, found.expected, found.actual) == (1, (1,), "0x00000000", "0x80000000")
    result = diff(golden.folder, off.folder)
    assert result.verdict.value == "drift"
    assert result.as_json()["differences"] == [{"golden": "golden", **found.as_json()}]
