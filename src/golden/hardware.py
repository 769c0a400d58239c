"""Which hardware a run uses, as a slug that names a folder of goldens: `cpu`, `cpu-arm64`, `h200`, `rtx-4090`.

CUDA devices are read from the driver's library, so that a process without torch can say what is here.
"""

from __future__ import annotations

import ctypes
import json
import platform
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

_ATTRIBUTES = {"multiprocessors": 16, "major": 75, "minor": 76}  # of cuDeviceGetAttribute
_ARCHITECTURES = {"x86_64": "x86-64", "amd64": "x86-64", "aarch64": "arm64"}
_SECONDS = 60.0  # a driver may have to be loaded first; after a minute it is taken for broken


@dataclass(frozen=True)
class Cuda:
    """A CUDA device.

    Attributes:
        name: as the driver gives it, "NVIDIA H200".
        capability: its compute capability, "9.0".
        multiprocessors: how many it has.
    """

    name: str
    capability: str
    multiprocessors: int

    @property
    def slug(self) -> str:
        """The device's name in lower case without the vendor, "h200"."""
        return device_slug(self.name)


def device_slug(name: str) -> str:
    """The slug of a CUDA device's name: "NVIDIA GeForce RTX 4090" gives "rtx-4090", "NVIDIA A100-SXM4-80GB" gives "a100-sxm4-80gb"."""
    return _sanitised(re.sub(r"\b(nvidia|geforce|tesla|amd)\b", "", name.lower())) or "cuda"


def cpu_slug(profile: str, system: str | None = None, machine: str | None = None, model: str | None = None) -> str:
    """The slug of a CPU under a profile.

    Args:
        profile: under "portable" it names what the profile makes equal, "cpu" for x86-64 Linux; under "native" the model.
        system: `platform.system()`, this machine's when None.
        machine: `platform.machine()`, this machine's when None.
        model: `cpu_model()`, this machine's when None.
    """
    system, machine = system or platform.system(), (machine or platform.machine()).lower()
    if profile == "native":
        return f"cpu-{_model_slug(model or cpu_model())}"
    architecture = _ARCHITECTURES.get(machine, _sanitised(machine))
    if system == "Linux":
        return "cpu" if architecture == "x86-64" else f"cpu-{architecture}"
    return f"cpu-{architecture}-{'macos' if system == 'Darwin' else _sanitised(system)}"


def slug(device: str, profile: str, cuda: Cuda | None = None) -> str:
    """The slug of where a run happens: of `cuda` where `device` is "cuda" (ValueError when there is none), else of this CPU."""
    if device == "cpu":
        return cpu_slug(profile)
    if cuda is None:
        raise ValueError(f"device {device!r} has no slug without a CUDA device")
    return cuda.slug


def cpu_model(cpuinfo: str | None = None) -> str:
    """The CPU's model, "AMD EPYC 9R14"; on Linux from `cpuinfo`, the text of /proc/cpuinfo, read when None."""
    facts = cpu_facts(cpuinfo)
    if facts.get("model name"):
        return facts["model name"]
    arm = [facts[key] for key in ("CPU implementer", "CPU part") if key in facts]
    return " ".join((platform.machine(), *arm)) if arm else platform.processor() or platform.machine()


def cpu_facts(cpuinfo: str | None = None) -> dict[str, str]:
    """The first processor's entries of /proc/cpuinfo, empty where there is none."""
    if cpuinfo is None:
        try:
            cpuinfo = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return {}
    pairs = (line.partition(":") for line in cpuinfo.strip().split("\n\n")[0].splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def cuda_devices(seconds: float = _SECONDS) -> tuple[Cuda, ...] | None:
    """The CUDA devices that a process started now would see, in its order; None where there is no driver or no answer in `seconds`.

    Asks in a process of its own: a driver that hangs or crashes takes nothing with it. CUDA_VISIBLE_DEVICES counts.
    """
    command = [sys.executable, "-I", "-S", __file__]
    try:
        answer = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=False)
        found = json.loads(answer.stdout) if answer.returncode == 0 else None
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return None if found is None else tuple(Cuda(**device) for device in found)


def torch_cuda() -> Cuda:
    """The current CUDA device as torch sees it. Imports torch, and starts CUDA."""
    import torch

    facts = torch.cuda.get_device_properties(torch.cuda.current_device())
    return Cuda(facts.name, f"{facts.major}.{facts.minor}", facts.multi_processor_count)


def _ask_driver() -> list[dict[str, str | int]] | None:
    try:
        driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return None
    count = ctypes.c_int()
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return None
    return [_describe(driver, index) for index in range(count.value)]


def _describe(driver: ctypes.CDLL, index: int) -> dict[str, str | int]:
    device, name, value = ctypes.c_int(), ctypes.create_string_buffer(256), ctypes.c_int()
    driver.cuDeviceGet(ctypes.byref(device), index)
    driver.cuDeviceGetName(name, len(name), device)
    facts = {}
    for key, attribute in _ATTRIBUTES.items():
        driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
        facts[key] = value.value
    capability = f"{facts['major']}.{facts['minor']}"
    return {"name": name.value.decode("utf-8", "replace"), "capability": capability, "multiprocessors": facts["multiprocessors"]}


def _model_slug(model: str) -> str:
    plain = re.sub(r"\((r|tm)\)|@.*|\b(cpu|processor|\d+-core)\b", " ", model.lower())
    return _sanitised(plain) or "unknown"


def _sanitised(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_ask_driver()))
