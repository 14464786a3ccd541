"""The counters of a kernel in the categories of NVIDIA's guide, each with its raw name."""

from __future__ import annotations

from triton_magics.model.base import Value
from triton_magics.model.profile import Profile, ProfiledKernel
from triton_magics.model.profile_metrics import CATEGORIES, METRICS, STALLS, raw_stall

_RAW = {metric.field: metric.raw for metric in METRICS}


class CategoryFigure(Value):
    """A figure of a kernel.

    Attributes:
        value: in the unit that its name ends with; None: it was not counted.
        raw: name in Nsight Compute.
        missing: why it was not counted.
    """

    value: float | None = None
    raw: str
    missing: str | None = None


def categories_of(kernel: ProfiledKernel) -> dict[str, dict[str, CategoryFigure]]:
    """Return category -> name of a figure -> figure."""
    grouped = {
        category: {
            field: CategoryFigure(
                value=getattr(kernel, field), raw=_RAW[field], missing=kernel.missing.get(field)
            )
            for field in fields
        }
        for category, fields in CATEGORIES.items()
    }
    stalls = {
        reason: CategoryFigure(value=kernel.stalls.get(reason), raw=raw_stall(reason))
        for reason in STALLS
    }
    return {**grouped, "stall": stalls}


def roofline_of(profile: Profile) -> dict[str, float | None]:
    """Return the figures of the category `roofline`; empty where none is known."""
    call = profile.roofline
    if call is None:
        return {}
    return {
        "bytes": call.bytes, "flops": call.flops, "gbps": call.gbps, "tflops": call.tflops,
        "copy_gbps": call.copy_gbps, "peak_tflops": call.peak_tflops, "limit_us": call.limit_us,
        "share_pct": call.share_pct,
    }  # fmt: skip


__all__ = ["CategoryFigure", "categories_of", "roofline_of"]
