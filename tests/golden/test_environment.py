"""What a run's environment is, and how two differ."""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import torch

from golden import environment
from golden.distributions import baseline
from golden.environment import difference, variables
from golden.hardware import Cuda
from tests.golden.prepared import INHERITED, OTHER_PRODUCTS, TWO_THREADS, report


def portable() -> dict[str, Any]:
    found: dict[str, Any] = report()["environment"]
    return found


def test_all_that_can_move_bits_is_named() -> None:
    """Versions, hardware, threads, variables and switches each have their place."""
    found = portable()
    assert found["torch"] == str(torch.__version__)
    assert found["hardware"] == "cpu"
    assert (found["threads"], found["interop_threads"]) == (1, 1)
    assert found["cpu"]["model"]
    assert found["cpu"]["capability"] in ("DEFAULT", "NO AVX")
    assert found["numpy"]["version"] == version("numpy")
    assert found["numpy"]["blas"] != "None None"
    assert found["libraries"]["onednn"]
    assert found["variables"]["ONEDNN_MAX_CPU_ISA"] == "SSE41"
    assert found["flags"]["torch.get_default_dtype()"] == "torch.float32"
    assert set(found) == {
        "torch", "hardware", "threads", "interop_threads", "variables", "flags", "cpu", "numpy", "libraries", "python",
        "python_implementation", "glibc", "os", "distributions",
    }  # fmt: skip


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="the loaded libraries are read from /proc")
def test_openblas_uses_the_kernels_that_the_profile_asks_for() -> None:
    """What numpy's library says of itself is what was set, and something else where nothing was."""
    if "openblas" not in portable()["numpy"]["blas"]:
        pytest.skip("numpy has another library for products")
    forced = report(forced=OTHER_PRODUCTS)["environment"]
    assert (portable()["numpy"]["blas_core"], forced["numpy"]["blas_core"]) == ("Nehalem", "Haswell")


def test_it_holds_nothing_that_varies_without_meaning() -> None:
    """Two processes of other inherited variables have equal environments, and no path, host or process is in them."""
    again = report(inherited=INHERITED)["environment"]
    assert difference(portable(), again) == []
    text = json.dumps(portable())
    for private in (str(Path.home()), os.uname().nodename, str(Path.cwd()), "/site-packages", str(os.getpid())):
        assert len(private) < 4 or private not in text


def test_what_the_cpu_offers_stands_below_cpu_alone() -> None:
    """Under the portable profile numpy counts no feature above the baseline, so that another CPU's list would be the same."""
    assert set(portable()["numpy"]["features"]) <= {"SSSE3", "SSE41", "POPCNT", "SSE42"}
    native = report("native", forced=TWO_THREADS)["environment"]
    assert native["hardware"] != "cpu"
    assert native["cpu"]["model"] == portable()["cpu"]["model"]


@pytest.mark.case("G13")
def test_one_variable_undone_is_named() -> None:
    """Of two runs that differ in variables, each is a line of its own."""
    forced = report(forced=OTHER_PRODUCTS)["environment"]
    paths = {item["path"]: (item["expected"], item["actual"]) for item in difference(portable(), forced)}
    assert paths["variables.MKL_CBWR"] == ("COMPATIBLE", "AVX2")
    assert {path for path in paths if path.startswith("variables.")} == {
        "variables.MKL_CBWR", "variables.OPENBLAS_CORETYPE", "variables.NPY_DISABLE_CPU_FEATURES"
    }  # fmt: skip


@pytest.mark.case("G14")
def test_another_number_of_threads_is_named() -> None:
    """The number of threads has the path that a report shows."""
    native = report("native", forced=TWO_THREADS)["environment"]
    assert {"path": "threads", "expected": 1, "actual": 2} in difference(portable(), native)


@pytest.mark.case("G18")
def test_differences_lead_with_the_weightiest() -> None:
    """torch comes first, then hardware, variables, switches and threads; a distribution last. A missing side is None."""
    one = {
        "distributions": {"a": "1"}, "threads": 1, "flags": {"f": False}, "variables": {"B": "1", "A": "1"}, "os": "x",
        "hardware": "cpu", "torch": "2.9.1", "gpu": {"name": "L4"},
    }  # fmt: skip
    two = {
        "torch": "2.13.0", "hardware": "l4", "variables": {"A": "2", "C": "1"}, "flags": {"f": True}, "threads": 2,
        "os": "y", "distributions": {"a": "2"}, "zzz": 1,
    }  # fmt: skip
    assert difference(one, two) == [
        {"path": "torch", "expected": "2.9.1", "actual": "2.13.0"},
        {"path": "hardware", "expected": "cpu", "actual": "l4"},
        {"path": "gpu.name", "expected": "L4", "actual": None},
        {"path": "variables.A", "expected": "1", "actual": "2"},
        {"path": "variables.B", "expected": "1", "actual": None},
        {"path": "variables.C", "expected": None, "actual": "1"},
        {"path": "flags.f", "expected": False, "actual": True},
        {"path": "threads", "expected": 1, "actual": 2},
        {"path": "distributions.a", "expected": "1", "actual": "2"},
        {"path": "os", "expected": "x", "actual": "y"},
        {"path": "zzz", "expected": None, "actual": 1},
    ]


def test_equal_values_of_other_types_differ() -> None:
    """1, 1.0 and True are three values."""
    assert difference({"a": 1}, {"a": 1}) == []
    assert [item["path"] for item in difference({"a": 1, "b": 1.0}, {"a": True, "b": 1})] == ["a", "b"]


def test_variables_are_those_that_move_bits() -> None:
    """Of a shell's variables the recorded ones are listed, by name; of preloaded libraries the names, not where they lie."""
    environ = {"HOME": "/h", "OMP_NUM_THREADS": "2", "NCCL_ALGO": "Ring", "LD_PRELOAD": "/usr/lib/libm.so /opt/x/libfake.so", "PATH": "/"}
    assert variables(environ) == {"LD_PRELOAD": "libm.so libfake.so", "NCCL_ALGO": "Ring", "OMP_NUM_THREADS": "2"}
    assert variables({"HOME": "/h", "LD_PRELOAD": ""}) == {}


def test_the_libraries_are_read_from_torchs_own_words() -> None:
    """MKL, oneDNN and the libraries for linear algebra; what torch does not name is left out."""
    text = "  - Intel(R) oneAPI Math Kernel Library Version 2024.2-Product Build 1\n  - Intel(R) MKL-DNN v3.7.1 (Git)\n BLAS_INFO=mkl, "
    assert environment._libraries(text) == {"mkl": "2024.2-Product", "onednn": "3.7.1", "blas": "mkl"}
    assert environment._libraries("") == {}


@contextmanager
def mapped(path: Path) -> Iterator[None]:
    """A file that this process has in its memory, as it has its libraries."""
    path.write_bytes(b"x" * mmap.PAGESIZE)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ):
        yield


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="the loaded libraries are read from /proc")
def test_loaded_libraries_are_found_by_a_part_of_their_name_wherever_they_lie(tmp_path: Path) -> None:
    """A folder may have spaces in its name, or the part; what has no library's name is none."""
    folder = tmp_path / "of two  words"
    folder.mkdir()
    library = folder / "libwanted-1.so.3"
    with mapped(library), mapped(folder / "wanted.txt"), mapped(folder / "libother.so"):
        assert environment._loaded("wanted") == [str(library)]
        assert environment._loaded("two") == []
    assert environment._loaded("wanted") == []


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
def test_the_c_library_is_named_with_its_version() -> None:
    """Its exp, log and pow move bits."""
    assert environment._glibc() == " ".join(platform.libc_ver())


def test_what_was_imported_before_counts_for_nothing() -> None:
    """Of the distributions in this process only torch and numpy are left where all modules were there before."""
    everything = baseline()
    found = environment.collect("cpu", "native", everything)["distributions"]
    assert {"torch", "numpy"} <= set(found)
    assert "pytest" not in found
    assert "pytest" in environment.collect("cpu", "native")["distributions"]


@pytest.mark.parametrize("key", ["flags", "Features"])
def test_a_cpu_is_named_by_what_linux_says_of_it(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """x86 lists "flags", ARM "Features"; family, model and stepping are left out where there is none."""
    facts = {key: "fp avx2 sve sse2", "cpu family": "25", "model": "17", "stepping": "1"}
    monkeypatch.setattr(environment, "cpu_facts", lambda: facts)
    found = environment._cpu()
    assert (found["family"], found["features"]) == ("25 17 1", ["avx2", "sve"])
    facts.clear()
    found = environment._cpu()
    assert (found["family"], found["features"]) == (None, [])


def test_a_system_is_named_by_kind_and_release(monkeypatch: pytest.MonkeyPatch) -> None:
    """On Linux by the distribution, where it says so; else by the version of the system."""
    said: dict[str, str] = {"ID": "debian", "VERSION_ID": "12", "NAME": "Debian"}
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: said)
    assert environment._system() == "Linux debian 12"
    del said["VERSION_ID"]
    assert environment._system() == "Linux debian"

    def nothing() -> None:
        raise FileNotFoundError

    monkeypatch.setattr(platform, "freedesktop_os_release", nothing)
    assert environment._system() == "Linux"
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(platform, "version", lambda: "10.0.26100")
    monkeypatch.setattr(platform, "mac_ver", lambda: ("14.5", ("", "", ""), "arm64"))
    assert environment._system() == "Darwin 14.5"
    monkeypatch.setattr(platform, "system", lambda: "Windows")
    monkeypatch.setattr(platform, "mac_ver", lambda: ("", ("", "", ""), ""))
    assert environment._system() == "Windows 10.0.26100"


def test_on_cuda_gpu_and_libraries_are_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The GPU names the hardware; on the CPU nobody asks for one."""
    monkeypatch.setattr(environment, "torch_cuda", lambda: Cuda("NVIDIA L4", "8.9", 58))
    monkeypatch.setattr(environment, "_cuda", lambda: {"runtime": "13.0"})
    found = environment.collect("cuda", "portable")
    assert (found["hardware"], found["cuda"]) == ("l4", {"runtime": "13.0"})
    assert found["gpu"] == {"name": "NVIDIA L4", "capability": "8.9", "multiprocessors": 58}
    assert {"gpu", "cuda"}.isdisjoint(environment.collect("cpu", "portable"))


@pytest.mark.parametrize(
    ("distributed", "built", "told", "expected"),
    [(True, True, (2, 29, 7), "2.29.7"), (True, True, 21005, 21005), (True, False, (2, 29, 7), None), (False, True, (2, 29, 7), None)],
)
def test_nccl_is_asked_where_torch_has_it(
    distributed: bool, built: bool, told: object, expected: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its version is a text; None where torch was built without it."""
    monkeypatch.setattr(torch.distributed, "is_available", lambda: distributed)
    monkeypatch.setattr(torch.distributed, "is_nccl_available", lambda: built)
    monkeypatch.setattr(torch.cuda.nccl, "version", lambda: told)
    found = environment._cuda()
    assert (found["nccl"], found["runtime"]) == (expected, torch.version.cuda)


class Driver:
    """NVIDIA's management library, as far as it is asked for its version."""

    def __init__(self, starts: int = 0, answers: int = 0) -> None:
        self.starts, self.answers, self.open = starts, answers, 0

    def nvmlInit_v2(self) -> int:  # noqa: N802
        self.open += not self.starts
        return self.starts

    def nvmlSystemGetDriverVersion(self, version: Any, length: int) -> int:  # noqa: N802
        assert len(version) == length >= 80
        assert self.open
        version.value = b"580.65.06"
        return self.answers

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.open -= 1


def test_the_driver_says_its_version_in_a_file_or_through_its_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None where there is no driver, or one that does not work; its library is closed again."""

    def asked(driver: Driver | None) -> str | None:
        def load(name: str) -> Driver:
            assert name == "libnvidia-ml.so.1"
            if driver is None:
                raise OSError(name)
            return driver

        monkeypatch.setattr(ctypes, "CDLL", load)
        return environment._driver()

    monkeypatch.setattr(environment, "_DRIVER", tmp_path / "version")
    assert asked(None) is None
    assert asked(Driver(starts=9)) is None
    silent, working = Driver(answers=1), Driver()
    assert asked(silent) is None
    assert asked(working) == "580.65.06"
    assert (silent.open, working.open) == (0, 0)
    (tmp_path / "version").write_text("570.1\n")
    assert asked(None) == "570.1"


class Products:
    """cuBLAS, as far as it is asked for its version."""

    def __init__(self, path: str) -> None:
        self.said = {0: 13, 1: 1} if "damaged" in path else {0: 13, 1: 1, 2: 7}

    def cublasGetProperty(self, part: int, value: Any) -> int:  # noqa: N802
        value._obj.value = self.said.get(part, -1)
        return 0 if part in self.said else 7


def test_cublas_says_major_minor_and_patch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None where it is not loaded, lies there no more, or does not say."""
    loaded: list[str] = []
    monkeypatch.setattr(environment, "_loaded", lambda part: loaded if part == "libcublas.so" else [])
    monkeypatch.setattr(ctypes, "CDLL", Products)
    assert environment._cublas() is None
    loaded.append(str(tmp_path / "libcublas.so.13"))
    assert environment._cublas() is None
    Path(loaded[0]).touch()
    assert environment._cublas() == "13.1.7"
    loaded.insert(0, str(tmp_path / "damaged-libcublas.so.12"))
    Path(loaded[0]).touch()
    assert environment._cublas() is None


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_cuda_run_names_the_gpu_and_its_libraries() -> None:
    """GPU, driver, CUDA, cuDNN, cuBLAS and NCCL are there, and the GPU's slug is the hardware."""
    found = report(device="cuda")["environment"]
    assert found["gpu"]["name"] == torch.cuda.get_device_name()
    assert found["gpu"]["multiprocessors"] > 0
    assert set(found["cuda"]) == {"runtime", "driver", "cudnn", "cublas", "nccl"}
    assert all(found["cuda"][key] for key in ("runtime", "driver", "cudnn", "cublas"))
    assert found["variables"]["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
