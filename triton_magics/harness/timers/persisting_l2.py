"""Lines of the L2 that stay through a flush: `evict_last` loads and persisting accesses.

On an H100 9.4 MiB of the L2 are set aside for them by default, so a kernel that loads with
`evict_last` found its input in the L2 after 100 MiB of other reads.
"""

from __future__ import annotations

import ctypes
from typing import Any

_LIMIT = 6  # CU_LIMIT_PERSISTING_L2_CACHE_SIZE


class PersistingL2:
    """Resets persisting lines and the part of the L2 that is set aside for them.

    The driver's functions are bound when it is made. Without a driver that has them nothing is
    reset: before Ampere no line persists.
    """

    def __init__(self) -> None:
        try:
            driver: Any = ctypes.CDLL("libcuda.so.1")
        except OSError:
            driver = None
        self._reset = getattr(driver, "cuCtxResetPersistingL2Cache", _do_nothing)
        self._get_limit = getattr(driver, "cuCtxGetLimit", _do_nothing)
        self._set_limit = getattr(driver, "cuCtxSetLimit", _do_nothing)

    def reset(self) -> None:
        """Make every line of the L2 a normal one; call it while the GPU is idle, before a flush.

        It takes 3 us of the host, and 11 us if the version has set a limit again.
        """
        if self.limit_bytes:
            self._set_limit(_LIMIT, ctypes.c_size_t(0))
        self._reset()

    @property
    def limit_bytes(self) -> int:
        """Size of the part that is set aside, in bytes; 0 where there is none."""
        limit = ctypes.c_size_t()
        self._get_limit(ctypes.byref(limit), _LIMIT)
        return limit.value


def _do_nothing(*_: Any) -> int:
    return 0
