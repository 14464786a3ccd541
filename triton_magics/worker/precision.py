"""What decides the precision of torch's own products: the same for all who are compared."""

from __future__ import annotations

from typing import Any

import torch

# The places of torch 2.9 and later; reading them never fails, whichever API set them.
_PLACES: tuple[tuple[Any, str], ...] = (
    (torch.backends, "fp32_precision"),
    (torch.backends.cuda.matmul, "fp32_precision"),
    (torch.backends.cudnn.conv, "fp32_precision"),
    (torch.backends.cuda.matmul, "allow_fp16_reduced_precision_reduction"),
    (torch.backends.cuda.matmul, "allow_bf16_reduced_precision_reduction"),
)


class Precision:
    """The settings as they are when this is made, to be put back after foreign code."""

    def __init__(self) -> None:
        self._product = torch.get_float32_matmul_precision()
        self._known = _read()

    def put_back(self) -> bool:
        """Whether something had changed; it is now as it was."""
        if _read() == self._known:
            return False
        torch.backends.fp32_precision = self._known[0]
        # Through the older API too: torch refuses a product where the two disagree.
        torch.set_float32_matmul_precision(self._product)
        for (place, name), value in zip(_PLACES, self._known, strict=True):
            setattr(place, name, value)
        return True


def _read() -> tuple[Any, ...]:
    return tuple(getattr(place, name) for place, name in _PLACES)
