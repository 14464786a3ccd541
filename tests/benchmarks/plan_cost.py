"""Cost of a plan: cases, forms to compile, milliseconds and JSON size, for each op and plan.

python tests/benchmarks/plan_cost.py [--json PATH]
"""

from __future__ import annotations

import time

from common import report

from triton_magics import operators
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import PlanJob
from triton_magics.harness.correctness.case_plan import DeviceFacts, plan_cases


def main() -> None:
    """Print the table."""
    rows = []
    for name in operators.names():
        for plan in ("quick", "full", "thorough"):
            job = PlanJob(op=OpRef(name=name), plan=plan, seed=7, device_kind="gpu")
            start_s = time.perf_counter()
            result = plan_cases(operators.load(name), job, DeviceFacts())
            rows.append({
                "op": name, "plan": plan, "cases": len(result.cases),
                "forms": len({(c.shape, c.dtype, c.layouts) for c in result.cases}),
                "covered": result.scope.n_covered if result.scope else 0,
                "ms": (time.perf_counter() - start_s) * 1e3,
                "json_kb": len(result.model_dump_json()) / 1e3,
            })  # fmt: skip
    report(__doc__, rows)


if __name__ == "__main__":
    main()
