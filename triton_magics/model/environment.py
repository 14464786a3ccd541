"""The machine and the software that a result comes from."""

from __future__ import annotations

from triton_magics.model.base import DeviceKind, Value


class Environment(Value):
    """Machine and software that a result comes from; without it a number means nothing."""

    device_kind: DeviceKind
    device: str
    capability: str | None = None
    gpu_uuid: str | None = None
    driver: str | None = None
    cuda: str | None = None
    sm_count: int | None = None
    l2_bytes: int | None = None
    memory_bytes: int | None = None
    python: str
    torch: str
    triton: str
    numpy: str | None = None
    flags: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """One line: device, driver, torch, triton."""
        driver = f", driver {self.driver}" if self.driver else ""
        return f"{self.device}{driver}, torch {self.torch}, triton {self.triton}"
