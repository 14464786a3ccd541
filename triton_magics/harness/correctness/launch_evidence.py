"""Kernels and torch operations of a validation's cases, and their shares of the work."""

from __future__ import annotations

from dataclasses import dataclass, field

from triton_magics.languages.kernel_runtime import Launches
from triton_magics.model import CaseResult, ComputedBy
from triton_magics.model.overall_verdict import share_work


@dataclass
class LaunchEvidence:
    """Launches of the cases so far.

    Attributes:
        kernels: names of the version's own kernels that ran.
        torch_ops: ATen operations that ran on the device beside them, allocations left out.
        is_share_known: torch's share of the work was checked.
    """

    is_share_known: bool = True
    kernels: dict[str, None] = field(default_factory=dict)
    torch_ops: dict[str, None] = field(default_factory=dict)

    def add(self, launches: Launches) -> None:
        """Add the launches of one case."""
        self.kernels.update(dict.fromkeys(launches.names))
        self.torch_ops.update(dict.fromkeys(launches.torch_ops))

    def computed_by(self, results: tuple[CaseResult, ...]) -> ComputedBy | None:
        """Return the shares of the work; None where they were not checked or no case passed."""
        return share_work(results) if self.is_share_known else None
