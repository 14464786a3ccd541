"""Which line reads or writes outside its tensor."""

from __future__ import annotations

from pathlib import Path

from tests.harness.kit import KERNELS, Recorder, field_of, run_cases, version_of
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import ReplayJob
from triton_magics.harness.correctness import locate_job
from triton_magics.model import RACE, Case, CaseResult, CaseStatus, Replay

CASE = Case(shape=(7, 13), dtype="float32", seed=1)
RELU = '''"""A right relu.

op: relu
status: passed
"""
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.maximum(x, 0.0, propagate_nan=tl.PropagateNan.ALL), mask=mask)


def triton_relu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out
'''


def relu(tmp_path: Path, old: str, new: str) -> tuple[CaseResult, Path]:
    """Run the case of a relu with one text replaced."""
    assert old in RELU
    path = tmp_path / f"relu{abs(hash(new))}.py"
    path.write_text(RELU.replace(old, new))
    return run_cases(path, CASE)[0], path


def line_of(path: Path, text: str) -> int:
    return next(i for i, line in enumerate(path.read_text().splitlines(), 1) if text in line)


def test_a_right_kernel_touches_nothing_outside(tmp_path: Path) -> None:
    result, _ = relu(tmp_path, "BLOCK=64", "BLOCK=64")
    assert result.status is CaseStatus.PASSED
    assert result.error is None


def test_a_load_out_of_bounds_is_reported_with_its_line(
    tmp_path: Path,
) -> None:
    result, path = relu(tmp_path, "x_ptr + offsets, mask=mask", "x_ptr + offsets")
    assert result.status is CaseStatus.OUT_OF_BOUNDS
    assert result.error is not None
    assert result.error.file_line == line_of(path, "tl.load")
    # 7 x 13 = 91 elements, two blocks of 64: 37 lanes past the end, the last by 37
    assert result.reason == ("reads outside input 0: 37 elements after its end, the farthest by 37")


def test_a_store_outside_is_named_with_its_line(tmp_path: Path) -> None:
    result, path = relu(tmp_path, ", mask=mask)\n\n\ndef", ")\n\n\ndef")
    assert result.status is CaseStatus.OUT_OF_BOUNDS
    assert result.error is not None
    assert result.error.file_line == line_of(path, "tl.store")
    assert result.error.message.startswith("writes outside a tensor [7, 13]") or (
        result.error.message.startswith("writes outside a tensor [7x13] that the wrapper made")
    )


def test_a_load_before_the_start_says_the_side(tmp_path: Path) -> None:
    result, _ = relu(tmp_path, "x_ptr + offsets, mask", "x_ptr + offsets - 2, mask")
    assert result.error is not None
    assert "2 elements before its start, the farthest by 2" in result.error.message


def test_a_wrong_output_names_the_line_whose_load_brought_it(tmp_path: Path) -> None:
    result = run_cases(KERNELS / "forgets_the_mask.py", CASE)[0]
    assert result.error is not None
    assert "outside" in result.error.message
    assert "tl." in str(result.error.code)


def replay(kernel: str) -> Replay:
    """Replay a small case of a kernel."""
    path = KERNELS / f"{kernel}.py"
    op = field_of(path, "op")
    case = Case(shape=(7, 13), dtype="bfloat16", seed=1)
    job = ReplayJob(op=OpRef(name=op), version=version_of(path, op), case=case)
    answer, retire = locate_job.run(job, Recorder())
    assert isinstance(answer, Replay)
    assert retire
    return answer


def test_a_replay_names_the_line_or_reports_none() -> None:
    replay_result = replay("forgets_the_mask")
    assert replay_result.error is not None
    assert replay_result.error.file_line == line_of(
        KERNELS / "forgets_the_mask.py", "tl.store"
    ) or (replay_result.error.file_line == line_of(KERNELS / "forgets_the_mask.py", "tl.load"))
    nothing = "no access outside a tensor was found, and no race"
    assert replay("vector_add_right").note == nothing


def test_a_replay_names_the_line_of_a_race() -> None:
    error = replay("stores_beyond_its_block").error
    assert error is not None
    assert error.kind == RACE
    assert error.message == "race: programs (0,0,0) and (1,0,0) both store to out_ptr[16]"
    assert error.file_line == line_of(KERNELS / "stores_beyond_its_block.py", "tl.store")
