"""Findings about the machine and the installation, and how to repair them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import model_validator

from triton_magics.model import older_records
from triton_magics.model.base import Value
from triton_magics.next_step import NextStep


class Finding(Value):
    """Outcome of one check of the machine.

    Attributes:
        subject: the part that was checked: `GPU`, `driver`, `cache`.
        state: `good`; `warn` where something is slower or missing; `bad` where it stops work.
        detail: the state as a sentence.
        remedy: the repair, where that is no verb.
        next_step: the verb that repairs it, where there is one.
    """

    subject: str
    state: Literal["good", "warn", "bad"]
    detail: str
    remedy: str | None = None
    next_step: NextStep | None = None

    @model_validator(mode="before")
    @classmethod
    def _convert_older(cls, value: Any) -> Any:
        names = {"what": "subject", "says": "detail", "mend": "remedy"}
        return older_records.rename_fields(value, names)


class Diagnosis(Value):
    """All findings, in the order in which one thing needs another."""

    kind: Literal["diagnosis"] = "diagnosis"
    findings: tuple[Finding, ...]

    @property
    def worst(self) -> Literal["good", "warn", "bad"]:
        """The state of the worst finding."""
        states = {finding.state for finding in self.findings}
        return "bad" if "bad" in states else "warn" if "warn" in states else "good"

    @property
    def problems(self) -> tuple[Finding, ...]:
        """Findings that are not good, the worst first."""
        faulty = [finding for finding in self.findings if finding.state != "good"]
        return tuple(sorted(faulty, key=lambda finding: finding.state != "bad"))
