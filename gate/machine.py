"""The hardware of this machine as slugs, and which device a slug stands for."""

from __future__ import annotations

from dataclasses import dataclass

from golden.hardware import cpu_slug, cuda_devices


def device_of(slug: str) -> str:
    """Which device a hardware folder belongs to: "cpu" or "cuda"."""
    return "cpu" if slug == "cpu" or slug.startswith("cpu-") else "cuda"


@dataclass(frozen=True)
class Machine:
    """What can be judged here.

    Attributes:
        portable: slug of the portable CPU profile ("cpu").
        native: slug of this very CPU ("cpu-amd-epyc-9654").
        cuda: slug of the first CUDA device ("h200"), None where there is none.
    """

    portable: str
    native: str
    cuda: str | None = None

    @classmethod
    def here(cls) -> Machine:
        """Asks this machine, without torch."""
        devices = cuda_devices()
        return cls(cpu_slug("portable"), cpu_slug("native"), devices[0].slug if devices else None)

    def slugs(self, device: str | None = None, profile: str | None = None) -> tuple[str, ...]:
        """What is here for a device (None for both) and a profile (None for both; it tells CPUs apart, not GPUs)."""
        cpus = {None: (self.portable, self.native), "portable": (self.portable,), "native": (self.native,)}[profile]
        cuda = () if self.cuda is None else (self.cuda,)
        return {None: cpus + cuda, "cpu": cpus, "cuda": cuda}[device]

    def default(self, device: str, profile: str | None = None) -> str | None:
        """Where a golden of a device goes; None without such a device."""
        if device == "cuda":
            return self.cuda
        return self.native if profile == "native" else self.portable

    def profile(self, slug: str) -> str | None:
        """The profile that one of this machine's CPU slugs stands for; None for GPUs, whose goldens say it themselves."""
        return {self.portable: "portable", self.native: "native"}.get(slug)
