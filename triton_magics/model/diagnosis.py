"""What stands between a user and a kernel that runs, and how to mend it."""

from __future__ import annotations

from typing import Literal

from triton_magics.model.base import Value


class Finding(Value):
    """One thing that was looked at.

    Attributes:
        what: `GPU`, `driver`, `cache`.
        state: `good`; `warn` where something is slower or missing; `bad` where it stops work.
        says: what was found.
        mend: what to do about it, where there is something to do.
    """

    what: str
    state: Literal["good", "warn", "bad"]
    says: str
    mend: str | None = None


class Diagnosis(Value):
    """Everything that was looked at, in the order in which one thing needs another."""

    kind: Literal["diagnosis"] = "diagnosis"
    findings: tuple[Finding, ...]

    @property
    def worst(self) -> Literal["good", "warn", "bad"]:
        """The state of the worst finding."""
        states = {finding.state for finding in self.findings}
        return "bad" if "bad" in states else "warn" if "warn" in states else "good"

    @property
    def to_mend(self) -> tuple[Finding, ...]:
        """What is not good, the worst first."""
        ill = [finding for finding in self.findings if finding.state != "good"]
        return tuple(sorted(ill, key=lambda finding: finding.state != "bad"))
