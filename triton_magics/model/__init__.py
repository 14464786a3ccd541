"""The values that everything passes on: one vocabulary for disk, pipe and screen.

Every value is frozen and built whole. What was not measured is `None`, never 0 or inf. A kernel
that fails is a *status*, never an exception. Times end in their unit. Derived figures are
properties, so that the JSON holds only what was seen.
"""

from triton_magics.model.base import (
    SIZES,
    SLUGS,
    CaseStatus,
    Clock,
    DeviceKind,
    Status,
    Value,
    check_op_name,
    is_version,
    parse_version,
    shape_of,
    shape_text,
    short,
    version_name,
)
from triton_magics.model.benchmark import (
    CONFIDENCE,
    Benchmark,
    Comparison,
    Discard,
    NotTimed,
    RunResult,
    TensorSummary,
    Timing,
)
from triton_magics.model.diagnosis import (
    Diagnosis,
    Finding,
)
from triton_magics.model.difference import (
    Difference,
    Side,
)
from triton_magics.model.environment import (
    Environment,
)
from triton_magics.model.knowledge import (
    OpFacts,
    Technique,
)
from triton_magics.model.record import (
    OpResult,
    Report,
    Setback,
    Summary,
)
from triton_magics.model.source import (
    Compilation,
    KernelError,
    KernelResources,
    KernelSource,
    Listing,
    Written,
)
from triton_magics.model.state import (
    Best,
    EngineState,
    Event,
    Export,
    LabState,
    OpPage,
    OpState,
    Reference,
    Result,
    State,
    Template,
    Verb,
    VersionState,
    WorkerState,
)
from triton_magics.model.sweep import (
    Configuration,
    Setting,
    Sweep,
    settings_text,
)
from triton_magics.model.validation import (
    Case,
    CaseResult,
    Mismatch,
    Plan,
    Replay,
    Sanitized,
    Tolerance,
    Validation,
    Validations,
)

__all__ = [
    "CONFIDENCE",
    "SIZES",
    "SLUGS",
    "Benchmark",
    "Best",
    "Case",
    "CaseResult",
    "CaseStatus",
    "Clock",
    "Comparison",
    "Compilation",
    "Configuration",
    "DeviceKind",
    "Diagnosis",
    "Difference",
    "Discard",
    "EngineState",
    "Environment",
    "Event",
    "Export",
    "Finding",
    "KernelError",
    "KernelResources",
    "KernelSource",
    "LabState",
    "Listing",
    "Mismatch",
    "NotTimed",
    "OpFacts",
    "OpPage",
    "OpResult",
    "OpState",
    "Plan",
    "Reference",
    "Replay",
    "Report",
    "Result",
    "RunResult",
    "Sanitized",
    "Setback",
    "Setting",
    "Side",
    "State",
    "Status",
    "Summary",
    "Sweep",
    "Technique",
    "Template",
    "TensorSummary",
    "Timing",
    "Tolerance",
    "Validation",
    "Validations",
    "Value",
    "Verb",
    "VersionState",
    "WorkerState",
    "Written",
    "check_op_name",
    "is_version",
    "parse_version",
    "settings_text",
    "shape_of",
    "shape_text",
    "short",
    "version_name",
]
