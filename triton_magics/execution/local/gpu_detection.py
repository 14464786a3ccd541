"""Find the GPUs and their names, without torch and without touching a GPU."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import re
import shutil
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
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
    """A GPU, as the driver describes it; unknown facts are None."""

    name: str
    driver: str | None = None
    uuid: str | None = None
    memory_bytes: int | None = None
    capability: int | None = None


def gpu_present(root: Path = Path("/"), env: Mapping[str, str] = os.environ) -> bool:
    """Return True if a CUDA program would find an NVIDIA GPU here.

    Args:
        root: folder that contains /dev and /proc.
        env: the environment of such a program.
    """
    if _HIDDEN.fullmatch(env.get("CUDA_VISIBLE_DEVICES", "all")):
        return False
    if any((root / "dev").glob("nvidia[0-9]*")):
        return True
    if (root / "dev/dxg").exists():  # Windows Subsystem for Linux
        return (root / "usr/lib/wsl/lib/libcuda.so.1").exists()
    # After a boot, this helper creates /dev/nvidia0 at first use. In a container without a GPU,
    # /proc can still show one of the host.
    has_helper = shutil.which("nvidia-modprobe") is not None
    return has_helper and any((root / "proc/driver/nvidia/gpus").glob("*"))


def detect(
    present: Callable[[], bool] = gpu_present, find: Callable[[str], Path | None] | None = None
) -> DeviceKind:
    """Return `gpu` if there is one that the installed torch can use, else `interpreter`."""
    if not present():
        return "interpreter"
    version_file = (find or _package_folder)("torch")
    return "interpreter" if version_file and _cpu_only(version_file) else "gpu"


def _cpu_only(torch_folder: Path) -> bool:
    """Return True if this torch was built without CUDA, from a file of it and without an import."""
    try:
        return bool(_CPU_ONLY_TORCH.search((torch_folder / "version.py").read_text()))
    except OSError:
        return False


def _package_folder(name: str) -> Path | None:
    spec = importlib.util.find_spec(name)
    return Path(spec.origin).parent if spec and spec.origin else None


def missing(find: Callable[[str], object] = importlib.util.find_spec) -> str | None:
    """Return which packages are missing and how to install them; None if none is."""
    absent = [name for name in NEEDED if find(name) is None]
    if not absent:
        return None
    are = "is" if len(absent) == 1 else "are"
    return (
        f"{' and '.join(absent)} {are} not installed, so no kernel can run here: "
        "pip install 'triton-magics[kernels]'"
    )


@functools.cache
def gpus() -> tuple[Gpu, ...]:
    """Return the GPUs that a CUDA program sees here, as the driver describes them."""
    return visible(gpus_from_proc() or gpus_from_nvml(), os.environ)


def first_gpu() -> Gpu | None:
    """Return the default GPU; None if the driver lists none."""
    return next(iter(gpus()), None)


def gpu_in_detail(uuid: str | None = None) -> Gpu | None:
    """Return a GPU with the facts that NVML adds; without a UUID the default one."""
    listed = next((gpu for gpu in gpus() if uuid in (None, gpu.uuid)), None)
    return next((gpu for gpu in gpus_from_nvml() if listed and gpu.uuid == listed.uuid), listed)


def visible(gpus: Sequence[Gpu], env: Mapping[str, str]) -> tuple[Gpu, ...]:
    """Return the GPUs that CUDA_VISIBLE_DEVICES names, in its order."""
    names = env.get("CUDA_VISIBLE_DEVICES")
    if names is None:
        return tuple(gpus)
    chosen = []
    for name in map(str.strip, names.split(",")):
        gpu = _named(name, gpus)
        if gpu is None:
            break  # CUDA ignores an unknown entry and all after it
        chosen.append(gpu)
    return tuple(chosen)


def _named(name: str, gpus: Sequence[Gpu]) -> Gpu | None:
    """Return the GPU of an entry of CUDA_VISIBLE_DEVICES: an index, a UUID, or a MIG device."""
    if name.isdecimal():
        return gpus[int(name)] if int(name) < len(gpus) else None
    if name.startswith("MIG-") and gpus:
        return replace(gpus[0], uuid=name)
    return next((gpu for gpu in gpus if name and (gpu.uuid or "").startswith(name)), None)


def gpus_from_proc(root: Path = Path("/")) -> tuple[Gpu, ...]:
    """Return the GPUs of the driver's own files, which need no package."""
    gpus = []
    for file in sorted((root / "proc/driver/nvidia/gpus").glob("*/information")):
        lines = file.read_text(errors="replace").splitlines()
        fields = {k.strip(): v.strip() for k, _, v in (line.partition(":") for line in lines)}
        uuid = fields.get("GPU UUID", "?")
        if name := fields.get("Model"):
            valid_uuid = None if "?" in uuid else uuid  # the driver has not read it yet
            gpus.append(Gpu(name, driver=_proc_driver(root), uuid=valid_uuid))
    return tuple(gpus)


def _proc_driver(root: Path) -> str | None:
    try:
        text = (root / "proc/driver/nvidia/version").read_text(errors="replace")
    except OSError:
        return None
    match = re.search(r"\s(\d{3}\.\d+(?:\.\d+)?)\s", text)
    return match[1] if match else None


def gpus_from_nvml(nvml: ModuleType | None = None) -> tuple[Gpu, ...]:
    """Return all GPUs by NVML; none without the package (extra `gpu`), a driver or a GPU."""
    nvml = nvml or _pynvml()
    if nvml is None:
        return ()
    try:
        return _query(nvml, _nvml_gpus)
    except nvml.NVMLError:
        return ()


def gpu_fault(uuid: str | None = None, nvml: ModuleType | None = None) -> str | None:
    """Return why a GPU can't be used, and the repair, by NVML; None: no known reason.

    Args:
        uuid: of the GPU; None: the first one.
        nvml: the module `pynvml`, by default the installed one.

    Source: NVIDIA, NVML reference, nvmlDeviceGetFieldValues, GPU recovery action.
    """
    nvml = nvml or _pynvml()
    if nvml is None:
        return None
    try:
        return _query(nvml, lambda n: _recovery(n, uuid))
    except nvml.NVMLError as error:
        return _FAULTS.get(getattr(error, "value", 0))


def nvml_refusal(nvml: ModuleType | None = None) -> str | None:
    """Return why NVML does not answer; None if it does or is not installed."""
    nvml = nvml or _pynvml()
    if nvml is None:
        return None
    try:
        _query(nvml, _handle)
    except nvml.NVMLError as error:
        return str(error)
    return None


def memory_of(
    pids: Container[int], nvml: ModuleType | None = None, *, uuid: str | None = None
) -> int | None:
    """Return the GPU memory of processes, bytes; None if NVML does not report it.

    In a container NVML reports other pids, or none.
    """
    nvml = nvml or _pynvml()
    if nvml is None:
        return None
    try:
        processes = _query(nvml, lambda n: n.nvmlDeviceGetComputeRunningProcesses(_handle(n, uuid)))
    except nvml.NVMLError:
        return None
    own = [process.usedGpuMemory for process in processes if process.pid in pids]
    return sum(own) if own and all(own) else None


def _pynvml() -> ModuleType | None:
    try:
        return importlib.import_module("pynvml")
    except ImportError:
        return None


def _query(nvml: ModuleType, query: Callable[[ModuleType], T]) -> T:
    nvml.nvmlInit()
    try:
        return query(nvml)
    finally:
        nvml.nvmlShutdown()


# Numbers of NVML that older versions of its package do not name.
_RECOVERY_ACTION = 230
_RESET = "it must be reset: `sudo nvidia-smi --gpu-reset -i 0`, with nothing running on it"
_REBOOT = "this machine must be rebooted"
_ACTIONS = {
    1: _RESET, 2: _REBOOT, 4: f"it works at reduced capacity; {_RESET}", 6: _RESET, 7: _REBOOT
}  # fmt: skip
_FAULTS = {15: f"it has fallen off the bus: {_REBOOT}", 16: _RESET}


def _recovery(nvml: ModuleType, uuid: str | None) -> str | None:
    (value,) = nvml.nvmlDeviceGetFieldValues(_handle(nvml, uuid), [_RECOVERY_ACTION])
    if value.nvmlReturn:  # not supported by this driver
        return None
    return _ACTIONS.get(int(value.value.uiVal))


def _handle(nvml: ModuleType, uuid: str | None = None) -> Any:
    """Return NVML's handle of a GPU; of the first one that CUDA sees without a UUID."""
    if uuid is not None:
        return nvml.nvmlDeviceGetHandleByUUID(uuid)
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip()
    return nvml.nvmlDeviceGetHandleByIndex(int(first) if first.isdecimal() else 0)


def _nvml_gpus(nvml: ModuleType) -> tuple[Gpu, ...]:
    handles = map(nvml.nvmlDeviceGetHandleByIndex, range(nvml.nvmlDeviceGetCount()))
    return tuple(_nvml_gpu(nvml, handle) for handle in handles)


def _nvml_gpu(nvml: ModuleType, handle: Any) -> Gpu:
    return Gpu(
        name=nvml.nvmlDeviceGetName(handle),
        driver=nvml.nvmlSystemGetDriverVersion(),
        uuid=nvml.nvmlDeviceGetUUID(handle),
        memory_bytes=int(nvml.nvmlDeviceGetMemoryInfo(handle).total),
        capability=_capability(nvml.nvmlDeviceGetCudaComputeCapability(handle)),
    )


def _capability(pair: Sequence[int]) -> int:
    """Return 90 for (9, 0)."""
    return 10 * pair[0] + pair[1]


@functools.cache
def capability(uuid: str | None = None) -> int | None:
    """Return a GPU's compute capability, 90 for sm_90; None if NVML does not report it."""
    gpus = gpus_from_nvml()
    chosen = next((gpu for gpu in gpus if uuid in (None, gpu.uuid)), None)
    return chosen.capability if chosen else None


__all__ = [
    "Gpu",
    "capability",
    "detect",
    "first_gpu",
    "gpu_fault",
    "gpu_present",
    "gpus",
    "missing",
]
