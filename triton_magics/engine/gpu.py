"""Is there a GPU, and what is it called: found out without torch and without touching the GPU."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from triton_magics.model import DeviceKind

NEEDED = ("torch", "triton", "numpy")
_HIDDEN = re.compile(r"\s*(-1\b.*|NoDevFiles)?\s*")
_CPU_ONLY_TORCH = re.compile(r"^cuda\b.*=\s*None\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Gpu:
    """The first GPU, as the driver describes it; what it does not tell is None."""

    name: str
    driver: str | None = None
    uuid: str | None = None
    memory_bytes: int | None = None
    capability: int | None = None


def gpu_present(root: Path = Path("/"), env: Mapping[str, str] = os.environ) -> bool:
    """Whether a CUDA program would find an NVIDIA GPU here.

    Args:
        root: where /dev and /proc are.
        env: the environment such a program would have.
    """
    if _HIDDEN.fullmatch(env.get("CUDA_VISIBLE_DEVICES", "all")):
        return False
    if any((root / "dev").glob("nvidia[0-9]*")):
        return True
    if (root / "dev/dxg").exists():  # Windows Subsystem for Linux
        return (root / "usr/lib/wsl/lib/libcuda.so.1").exists()
    # Bare metal after a boot: the driver makes /dev/nvidia0 when a program first asks, by this
    # helper. In a container without a GPU the host's /proc can show one all the same.
    has_helper = shutil.which("nvidia-modprobe") is not None
    return has_helper and any((root / "proc/driver/nvidia/gpus").glob("*"))


def detect(
    present: Callable[[], bool] = gpu_present, find: Callable[[str], Path | None] | None = None
) -> DeviceKind:
    """`gpu` where there is one and the installed torch can use it, else `interpreter`."""
    if not present():
        return "interpreter"
    version_file = (find or _package_folder)("torch")
    return "interpreter" if version_file and _cpu_only(version_file) else "gpu"


def _cpu_only(torch_folder: Path) -> bool:
    """Whether this torch was built without CUDA; it says so in a file, so nothing is imported."""
    try:
        return bool(_CPU_ONLY_TORCH.search((torch_folder / "version.py").read_text()))
    except OSError:
        return False


def _package_folder(name: str) -> Path | None:
    spec = importlib.util.find_spec(name)
    return Path(spec.origin).parent if spec and spec.origin else None


def missing(find: Callable[[str], object] = importlib.util.find_spec) -> str | None:
    """What kernels need and is not installed, and how to install it; None if all is there."""
    absent = [name for name in NEEDED if find(name) is None]
    if not absent:
        return None
    are = "is" if len(absent) == 1 else "are"
    return (
        f"{' and '.join(absent)} {are} not installed, so no kernel can run here: "
        "pip install 'triton-magics[kernels]'"
    )


@functools.cache
def first_gpu() -> Gpu | None:
    """What the driver says of the first GPU; None where it says nothing."""
    return from_proc() or from_nvml()


def from_proc(root: Path = Path("/")) -> Gpu | None:
    """The first GPU from the driver's own files, which are there without any package."""
    for file in sorted((root / "proc/driver/nvidia/gpus").glob("*/information")):
        lines = file.read_text(errors="replace").splitlines()
        fields = {k.strip(): v.strip() for k, _, v in (line.partition(":") for line in lines)}
        if name := fields.get("Model"):
            return Gpu(name, driver=_proc_driver(root), uuid=fields.get("GPU UUID"))
    return None


def _proc_driver(root: Path) -> str | None:
    try:
        text = (root / "proc/driver/nvidia/version").read_text(errors="replace")
    except OSError:
        return None
    found = re.search(r"\s(\d{3}\.\d+(?:\.\d+)?)\s", text)
    return found[1] if found else None


def from_nvml() -> Gpu | None:
    """The first GPU by NVML; None without the package (extra `gpu`), a driver or a GPU."""
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
        try:
            return _nvml_gpu(pynvml)
        finally:
            pynvml.nvmlShutdown()
    except pynvml.NVMLError:
        return None


def _nvml_gpu(nvml: ModuleType) -> Gpu:
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip()
    handle = nvml.nvmlDeviceGetHandleByIndex(int(first) if first.isdecimal() else 0)
    return Gpu(
        name=nvml.nvmlDeviceGetName(handle),
        driver=nvml.nvmlSystemGetDriverVersion(),
        uuid=nvml.nvmlDeviceGetUUID(handle),
        memory_bytes=int(nvml.nvmlDeviceGetMemoryInfo(handle).total),
        capability=_capability(nvml.nvmlDeviceGetCudaComputeCapability(handle)),
    )


def _capability(pair: Sequence[int]) -> int:
    """90 of (9, 0)."""
    return 10 * pair[0] + pair[1]


@functools.cache
def capability() -> int | None:
    """The first GPU's compute capability, 90 for sm_90; None where NVML does not say."""
    found = from_nvml()
    return found.capability if found else None


__all__ = ["Gpu", "capability", "detect", "first_gpu", "gpu_present", "missing"]
