"""The devices of this machine that the settings choose."""

from __future__ import annotations

from collections.abc import Sequence

from triton_magics.config import Settings
from triton_magics.errors import BadValue
from triton_magics.execution.base import Device
from triton_magics.execution.job_requests import DeviceKind
from triton_magics.execution.local import gpu_detection
from triton_magics.execution.local.gpu_detection import Gpu

INTERPRETER = Device(id="interpreter", kind="interpreter", name="CPU (Triton's interpreter)")
UNKNOWN_GPU = Device(id="gpu", kind="gpu", name="GPU")


def devices_of(kind: DeviceKind, settings: Settings, gpus: Sequence[Gpu]) -> tuple[Device, ...]:
    """Return the devices that run jobs, the default one first.

    Args:
        kind: how kernels run, as set or detected.
        settings: `gpus` names GPUs by index or UUID.
        gpus: those that a CUDA program sees here.

    Raises:
        BadValue: `gpus` names a GPU that is not here, or contradicts the setting `device`.
    """
    if kind == "interpreter":
        if settings.gpus not in ("", "all") or (settings.gpus and settings.device != "auto"):
            why = (
                f"and device = {settings.device!r} contradict each other"
                if settings.device == "interpreter"
                else "but there is no GPU here that this torch can use"
            )
            raise BadValue(f"gpus = {settings.gpus!r} {why}; set gpus = ''")
        return (INTERPRETER,)
    return tuple(map(_device_of, chosen_gpus(settings.gpus, gpus))) or (UNKNOWN_GPU,)


def chosen_gpus(setting: str, gpus: Sequence[Gpu]) -> tuple[Gpu, ...]:
    """Return the GPUs that the setting `gpus` names, in its order; all where it names none.

    Args:
        setting: empty, `all`, or indices and UUIDs, as in `0,1`.
        gpus: those that a CUDA program sees here.

    Raises:
        BadValue: there is no such GPU, or one is named twice.
    """
    if setting in ("", "all"):
        return tuple(gpus)
    names = [name.strip() for name in setting.split(",")]
    chosen = {name: _named(name, gpus) for name in names}
    unknown = [name for name, gpu in chosen.items() if gpu is None]
    if unknown:
        here = ", ".join(f"{i} ({gpu.name}, {gpu.uuid})" for i, gpu in enumerate(gpus)) or "none"
        raise BadValue(f"gpus = {setting!r}: there is no GPU {', '.join(unknown)}. Here: {here}")
    named = [gpu for name in names if (gpu := chosen[name])]
    if len({gpu.uuid for gpu in named}) < len(named):
        raise BadValue(f"gpus = {setting!r} names a GPU twice; name each once")
    return tuple(named)


def _named(name: str, gpus: Sequence[Gpu]) -> Gpu | None:
    if name.isdecimal():
        return gpus[int(name)] if int(name) < len(gpus) else None
    fits = [gpu for gpu in gpus if name and gpu.uuid and gpu.uuid.startswith(name)]
    return fits[0] if len(fits) == 1 else None


def _device_of(gpu: Gpu) -> Device:
    capability = gpu.capability or gpu_detection.capability(gpu.uuid)
    return Device(
        id=gpu.uuid or "gpu", kind="gpu", name=gpu.name, uuid=gpu.uuid, capability=capability
    )


__all__ = ["INTERPRETER", "UNKNOWN_GPU", "chosen_gpus", "devices_of"]
