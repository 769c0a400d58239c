"""Known answers of the portable profile."""

from __future__ import annotations

import platform
import time

import pytest

from golden import known
from golden.known import EXPECTED, Answers
from tests.golden.prepared import INHERITED, OTHER_PRODUCTS, TWO_THREADS, report

measured = pytest.mark.skipif(
    (platform.system(), platform.machine()) != ("Linux", "x86_64"), reason="answers are known on x86-64 Linux alone"
)


@measured
def test_this_machine_keeps_the_portable_profile() -> None:
    """A process under the portable profile gives the answers that ship with golden, each of them."""
    found = report()
    assert (found["honoured"], found["broken"], found["actual"]) == (True, [], EXPECTED)


@measured
def test_inherited_variables_change_no_answer() -> None:
    """Threads and instructions that the shell asks for do not reach the process."""
    found = report(inherited=INHERITED)
    assert found["actual"] == EXPECTED


@measured
@pytest.mark.parametrize(
    ("forced", "broken", "kept"),
    [
        (TWO_THREADS, {"torch-fp32"}, {"torch-bf16", "torch-random", "numpy-functions", "numpy-products", "libm"}),
        (
            OTHER_PRODUCTS,
            {"torch-products", "numpy-functions", "numpy-products"},
            {"torch-bf16", "libm"},
        ),
        ("ATEN_CPU_CAPABILITY=avx2", {"torch-functions", "torch-random"}, {"torch-products", "numpy-functions", "numpy-products", "libm"}),
        ("GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-FMA", {"libm"}, {"torch-fp32", "torch-bf16", "torch-products", "numpy-products"}),
    ],
)
def test_each_variable_moves_the_aspects_that_it_rules(forced: str, broken: set[str], kept: set[str]) -> None:
    """Negative control: variables of the profile undone, and the answers say which parts are not kept, and which are."""
    found = report(forced=forced)
    assert found["honoured"] is False
    assert broken <= set(found["broken"])
    assert not kept & set(found["broken"])


@measured
def test_a_native_machine_does_not_keep_it() -> None:
    """Two threads and the machine's own instructions give other answers."""
    found = report("native", forced=TWO_THREADS)
    assert found["honoured"] is False
    assert {"torch-fp32", "torch-functions", "numpy-functions"} <= set(found["broken"])


def test_only_what_differs_is_broken() -> None:
    """The aspects that answer otherwise are named, in order, and no others; without known answers nothing is claimed."""
    assert tuple(known.ASPECTS) == tuple(EXPECTED)
    actual = {**EXPECTED, "libm": "0" * 16, "torch-bf16": "1" * 16}
    assert Answers(EXPECTED, actual).broken == ("torch-bf16", "libm")
    assert Answers(EXPECTED, actual).honoured is False
    assert Answers(EXPECTED, EXPECTED).honoured is True
    assert (Answers({}, actual).broken, Answers({}, actual).honoured) == ((), None)


def test_the_answers_take_a_moment() -> None:
    """All answers together take less than a second of one core."""
    known.check()
    start = time.thread_time()
    known.check()
    assert time.thread_time() - start < 1.0
