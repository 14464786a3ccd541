"""Is there a GPU, and what is it called: found out without torch and without touching the GPU."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import re
import shutil
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from triton_magics.model import DeviceKind

T = TypeVar("T")
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


def ailment(nvml: ModuleType | None = None) -> str | None:
    """What keeps the GPU from coming back, by NVML, and what mends it; None: nothing that it knows.

    Args:
        nvml: the module `pynvml`, by default the installed one.

    Source: NVIDIA, NVML reference, nvmlDeviceGetFieldValues, GPU recovery action.
    """
    nvml = nvml or _pynvml()
    if nvml is None:
        return None
    try:
        return _asked(nvml, _recovery)
    except nvml.NVMLError as error:
        return _AILMENTS.get(getattr(error, "value", 0))


def nvml_refusal(nvml: ModuleType | None = None) -> str | None:
    """Why NVML does not answer; None where it does, or is not installed."""
    nvml = nvml or _pynvml()
    if nvml is None:
        return None
    try:
        _asked(nvml, _first_handle)
    except nvml.NVMLError as error:
        return str(error)
    return None


def memory_of(pids: Container[int], nvml: ModuleType | None = None) -> int | None:
    """What these processes take of the first GPU, bytes; None where NVML does not tell.

    In a container it knows processes by other numbers, or not at all.
    """
    nvml = nvml or _pynvml()
    if nvml is None:
        return None
    try:
        found = _asked(nvml, lambda n: n.nvmlDeviceGetComputeRunningProcesses(_first_handle(n)))
    except nvml.NVMLError:
        return None
    own = [process.usedGpuMemory for process in found if process.pid in pids]
    return sum(own) if own and all(own) else None


def _pynvml() -> ModuleType | None:
    try:
        return importlib.import_module("pynvml")
    except ImportError:
        return None


def _asked(nvml: ModuleType, question: Callable[[ModuleType], T]) -> T:
    nvml.nvmlInit()
    try:
        return question(nvml)
    finally:
        nvml.nvmlShutdown()


# NVML's own numbers, which older versions of its package do not name.
_RECOVERY_ACTION = 230
_RESET = "it must be reset: `sudo nvidia-smi --gpu-reset -i 0`, with nothing running on it"
_REBOOT = "this machine must be rebooted"
_ACTIONS = {
    1: _RESET, 2: _REBOOT, 4: f"it works at reduced capacity; {_RESET}", 6: _RESET, 7: _REBOOT
}  # fmt: skip
_AILMENTS = {15: f"it has fallen off the bus: {_REBOOT}", 16: _RESET}


def _recovery(nvml: ModuleType) -> str | None:
    (value,) = nvml.nvmlDeviceGetFieldValues(_first_handle(nvml), [_RECOVERY_ACTION])
    if value.nvmlReturn:  # a driver that does not tell
        return None
    return _ACTIONS.get(int(value.value.uiVal))


def _first_handle(nvml: ModuleType) -> Any:
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip()
    return nvml.nvmlDeviceGetHandleByIndex(int(first) if first.isdecimal() else 0)


def _nvml_gpu(nvml: ModuleType) -> Gpu:
    handle = _first_handle(nvml)
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


__all__ = ["Gpu", "ailment", "capability", "detect", "first_gpu", "gpu_present", "missing"]
