"""Records, verifies or compares a state of a given size in a process of its own, and says what that took.

``python -m tests.golden.scaled PART SIZE FOLDER`` prints {"seconds": CPU time, "bytes": growth of the process beyond what it held before}.
Imports count for neither. Memory is the kernel's high-water mark of this process, reset before (getrusage() would go on from that of the
process which started it), less what was held then: where a kernel does not reset the mark, imports' peak must not hide growth.
"""

from __future__ import annotations

import ctypes
import gc
import json
import shutil
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

FACTS = {"scenario": {"name": "many"}, "environment": {}, "sources": {}, "hardware": "cpu", "torch": "2.13.0"}
STEPS = 3


def record(tensors: int, folder: Path, gradient: float = 1.0) -> Callable[[], None]:
    """A training of `tensors` tensors of three elements, a third of them weights, gradients and momenta each, kept whole."""
    import torch

    import golden
    from golden.writer import Writer

    torch.set_num_threads(1)
    model = torch.nn.ParameterList(torch.full((3,), float(index)) for index in range(tensors // 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for parameter in model.parameters():
        parameter.grad = torch.full((3,), gradient)

    def work() -> None:
        writer = Writer(folder / ("golden" if gradient == 1.0 else "other"))
        recorder = golden.Recorder(writer.add, steps=STEPS, store="full")
        for _ in range(STEPS):
            optimizer.step()
            recorder(grads=golden.gradients(model), optimizer=optimizer, model=model)
        writer.finish(**FACTS)  # type: ignore[arg-type]

    return work


def verify(_tensors: int, folder: Path) -> Callable[[], None]:
    """A golden, read to the last byte, against another that is identical."""
    from golden.compare import compare
    from golden.store import Golden

    if not (folder / "equal").exists():
        shutil.copytree(folder / "golden", folder / "equal")

    def work() -> None:
        expected = Golden.open(folder / "golden")
        expected.check()
        assert compare(expected, Golden.open(folder / "equal"), limit=1000).identical

    return work


def diff(tensors: int, folder: Path) -> Callable[[], None]:
    """The files of two goldens, of which every tensor differs at every step."""
    from golden.compare import compare_files
    from golden.store import Golden

    def work() -> None:
        comparison, damaged = compare_files(Golden.open(folder / "golden"), Golden.open(folder / "other"), limit=1000)
        assert comparison.bits >= STEPS * tensors, comparison.bits  # numpy and Python were seeded by nobody
        assert not damaged

    return work


def state(size: int, folder: Path) -> Callable[[], None]:
    """One state of `size` bytes in 50 tensors, recorded with digests; the state itself is made by the work, and counts."""
    import torch

    import golden
    from golden.writer import Writer

    torch.set_num_threads(1)

    def work() -> None:
        tensors = [torch.ones(size // 200) for _ in range(50)]
        tensors[0] = tensors[0].view(torch.complex64).conj()
        tensors[1] = tensors[1].view(100, -1).t()
        recorder = golden.Recorder(Writer(folder / "golden").add, steps=2, store="digest")
        for _ in range(2):
            recorder(state=tensors)

    return work


def settle() -> None:
    """Gives free memory back to the system: what the work takes from it would not be seen to grow."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)


def held(mark: str) -> int:
    """Bytes of memory that this process holds now (VmRSS), or has held at most since the mark was reset (VmHWM)."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(mark))


def main(part: str, size: str, folder: str) -> None:
    """Does one part, and prints what it took."""
    parts: dict[str, Callable[[int, Path], Callable[[], None]]] = {
        "record": record,
        "other": partial(record, gradient=2.0),
        "verify": verify,
        "diff": diff,
        "state": state,
    }
    work = parts[part](int(size), Path(folder))
    settle()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before, start = held("VmRSS"), time.process_time()
    work()
    sys.stdout.write(json.dumps({"seconds": time.process_time() - start, "bytes": held("VmHWM") - before}))


if __name__ == "__main__":
    main(*sys.argv[1:])
