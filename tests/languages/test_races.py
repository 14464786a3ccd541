"""Races between the programs of a launch, in the interpreter; and what only looks like one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.kit import run_cases
from triton_magics.harness.correctness.call_record import CallRecord
from triton_magics.harness.correctness.remote_calls import CallReply
from triton_magics.model import Case, CaseResult, CaseStatus

HEAD = '''"""{name}.

op: {op}
"""
import torch
import triton
import triton.language as tl
'''
SHAPES = {"matmul": (16, 16, 48), "vector_add": (200,), "relu": (200,)}

ADDS_WITHOUT_ATOMICS = """
@triton.jit
def kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row, part = tl.program_id(0), tl.program_id(1)
    cols = part * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0)
    so_far = tl.load(out_ptr + row)  # here
    tl.store(out_ptr + row, so_far + tl.sum(x, axis=0))


def triton_sum(x):
    x = x.contiguous()
    out = torch.zeros(x.shape[:-1], dtype=x.dtype, device=x.device)
    kernel[(out.numel(), triton.cdiv(x.shape[-1], 16))](x, out, x.shape[-1], BLOCK=16)
    return out
"""
FIRST_PROGRAM_CLEARS = """
@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, alpha, BLOCK: tl.constexpr, ALL: tl.constexpr):
    pid = tl.program_id(0)
    if pid == 0:
        every = tl.arange(0, ALL)
        tl.store(out_ptr + every, tl.zeros([ALL], tl.float32), mask=every < n)
    at = pid * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    y = tl.load(y_ptr + at, mask=at < n)
    tl.store(out_ptr + at, x + alpha * y, mask=at < n)  # here


def triton_vector_add(x, y, alpha=1.0):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    kernel[(triton.cdiv(n, 64),)](x, y, out, n, alpha, BLOCK=64, ALL=triton.next_power_of_2(n))
    return out
"""
FIRST_PROGRAM_FINDS_MAXIMA = """
@triton.jit
def kernel(x_ptr, top_ptr, out_ptr, n_rows, n_cols, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    if pid == 0:
        for row in range(n_rows):
            x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=-float("inf"))
            tl.store(top_ptr + row, tl.max(x, axis=0))
    x = tl.load(x_ptr + pid * n_cols + cols, mask=cols < n_cols, other=-float("inf"))
    e = tl.exp(x - tl.load(top_ptr + pid))  # here
    tl.store(out_ptr + pid * n_cols + cols, e / tl.sum(e, axis=0), mask=cols < n_cols)


def triton_softmax(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    out, top = torch.empty_like(rows), torch.empty(rows.shape[0], device=x.device)
    n, m = rows.shape
    kernel[(n,)](rows, top, out, n, m, BLOCK=triton.next_power_of_2(m))
    return out.view(x.shape)
"""
LAST_PROGRAM_ADDS = """
@triton.jit
def kernel(x_ptr, part_ptr, out_ptr, n_cols, BLOCK: tl.constexpr, PARTS: tl.constexpr):
    row, part = tl.program_id(0), tl.program_id(1)
    cols = part * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0)
    tl.store(part_ptr + row * PARTS + part, tl.sum(x, axis=0))
    if part == tl.num_programs(1) - 1:
        lanes = tl.arange(0, PARTS)
        mask = lanes <= part
        parts = tl.load(part_ptr + row * PARTS + lanes, mask=mask, other=0.0)  # here
        tl.store(out_ptr + row, tl.sum(parts, axis=0) / n_cols)


def triton_mean(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    n, m = rows.shape
    out, parts = torch.empty(n, device=x.device), torch.empty(n, 128, device=x.device)
    kernel[(n, triton.cdiv(m, 16))](rows, parts, out, m, BLOCK=16, PARTS=128)
    return out.view(x.shape[:-1])
"""
OVERWRITES_ITS_NEIGHBOUR = """
@triton.jit
def kernel(buffer_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(buffer_ptr + at + BLOCK)
    y = tl.maximum(x, 0.0, propagate_nan=tl.PropagateNan.ALL)
    tl.store(buffer_ptr + at, y, mask=at < n)  # here


def triton_relu(x):
    n = x.numel()
    padded = triton.cdiv(n, 64) * 64
    buffer = torch.zeros(padded + 64, dtype=x.dtype, device=x.device)
    buffer[64 : 64 + n] = x.reshape(-1)
    kernel[(padded // 64,)](buffer, n, BLOCK=64)
    return buffer[:n].clone().view(x.shape)
"""
SPLITS_K_WITHOUT_ATOMICS = """
@triton.jit
def kernel(a_ptr, b_ptr, out_ptr, n, k, BLOCK: tl.constexpr):
    part = tl.program_id(0)
    rows, cols = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None, :]
    inner = part * BLOCK
    a = tl.load(a_ptr + rows * k + inner + cols)
    b = tl.load(b_ptr + (inner + rows) * n + cols)
    product = tl.dot(a, b, input_precision="ieee")
    at = out_ptr + rows * n + cols
    tl.store(at, tl.load(at) + product)  # here


def triton_matmul(a, b):
    a, b = a.contiguous(), b.contiguous()
    out = torch.zeros(a.shape[0], b.shape[1], dtype=a.dtype, device=a.device)
    kernel[(a.shape[1] // 16,)](a, b, out, b.shape[1], a.shape[1], BLOCK=16)
    return out
"""
SHARES_A_SLOT = """
@triton.jit
def kernel(x_ptr, slot_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=-float("inf"))
    tl.store(slot_ptr + row // 2, tl.max(x, axis=0))  # here
    e = tl.exp(x - tl.load(slot_ptr + row // 2))
    tl.store(out_ptr + row * n_cols + cols, e / tl.sum(e, axis=0), mask=cols < n_cols)


def triton_softmax(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    out, slot = torch.empty_like(rows), torch.empty(rows.shape[0], device=x.device)
    kernel[(rows.shape[0],)](rows, slot, out, rows.shape[1], BLOCK=1024)
    return out.view(x.shape)
"""
RACY = [
    ("adds_without_atomics", "sum", ADDS_WITHOUT_ATOMICS, "stores out_ptr[0]"),
    ("first_program_clears", "vector_add", FIRST_PROGRAM_CLEARS, "both store to out_ptr[64]"),
    ("first_program_finds_maxima", "softmax", FIRST_PROGRAM_FINDS_MAXIMA, "stores top_ptr[1]"),
    ("last_program_adds", "mean", LAST_PROGRAM_ADDS, "stores part_ptr[0]"),
    ("overwrites_its_neighbour", "relu", OVERWRITES_ITS_NEIGHBOUR, "loads buffer_ptr[64]"),
    ("splits_k_without_atomics", "matmul", SPLITS_K_WITHOUT_ATOMICS, "stores out_ptr[0]"),
    ("shares_a_slot", "softmax", SHARES_A_SLOT, "both store to slot_ptr[0]"),
]

ADDS_WITH_ATOMICS = ADDS_WITHOUT_ATOMICS.replace(
    "    so_far = tl.load(out_ptr + row)  # here\n", ""
).replace(
    "tl.store(out_ptr + row, so_far + tl.sum(x, axis=0))",
    "tl.atomic_add(out_ptr + row, tl.sum(x, axis=0))",
)
LAST_TO_FINISH_ADDS = (
    LAST_PROGRAM_ADDS.replace("part_ptr, out_ptr, n", "part_ptr, count_ptr, out_ptr, n")
    .replace(
        "if part == tl.num_programs(1) - 1:",
        "if tl.atomic_add(count_ptr + row, 1) == tl.num_programs(1) - 1:",
    )
    .replace("mask = lanes <= part", "mask = lanes < tl.num_programs(1)")
    .replace("(rows, parts, out,", "(rows, parts, count, out,")
    .replace(
        "    kernel[", "    count = torch.zeros(n, dtype=torch.int32, device=x.device)\n    kernel["
    )
)
ADDS_UNDER_A_LOCK = (
    ADDS_WITHOUT_ATOMICS.replace("out_ptr, n_cols,", "out_ptr, lock_ptr, n_cols,")
    .replace(
        "    so_far =",
        "    while tl.atomic_cas(lock_ptr + row, 0, 1) == 1:\n        pass\n    so_far =",
    )
    .replace(
        "so_far + tl.sum(x, axis=0))",
        "so_far + tl.sum(x, axis=0))\n"
        "    tl.debug_barrier()\n    tl.atomic_xchg(lock_ptr + row, 0)",
    )
    .replace("(x, out, x.shape", "(x, out, lock, x.shape")
    .replace("    kernel[", "    lock = torch.zeros(out.numel(), dtype=torch.int32)\n    kernel[")
)
LAST_BLOCK_OVERLAPS = """
@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, alpha, BLOCK: tl.constexpr):
    start = tl.minimum(tl.program_id(0) * BLOCK, n - BLOCK)
    at = start + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at) + alpha * tl.load(y_ptr + at))


def triton_vector_add(x, y, alpha=1.0):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 64),)](x, y, out, x.numel(), alpha, BLOCK=64)
    return out
"""
ONE_SLOT_A_PROGRAM = SHARES_A_SLOT.replace("row // 2", "row")
ALL_STORE_ONE_FLAG = (
    ONE_SLOT_A_PROGRAM.replace(
        "    e = tl.exp",
        "    tl.store(flag_ptr, 1.0)\n    seen = tl.load(flag_ptr)\n    e = seen * tl.exp",
    )
    .replace("slot_ptr, out_ptr", "slot_ptr, flag_ptr, out_ptr")
    .replace("slot, out, rows.shape[1]", "slot, torch.empty(1), out, rows.shape[1]")
)
IN_PLACE = OVERWRITES_ITS_NEIGHBOUR.replace("buffer_ptr + at + BLOCK", "buffer_ptr + at").replace(
    "buffer[64 : 64 + n]", "buffer[:n]"
)
TWO_LAUNCHES = (
    FIRST_PROGRAM_CLEARS.replace("    if pid == 0:", "    if CLEAR:")
    .replace("ALL: tl.constexpr", "ALL: tl.constexpr, CLEAR: tl.constexpr")
    .replace(
        "    kernel[(triton.cdiv(n, 64),)](x, y, out, n, alpha, BLOCK=64, "
        "ALL=triton.next_power_of_2(n))\n",
        "    width = triton.next_power_of_2(n)\n"
        "    kernel[(1,)](x, y, out, n, alpha, BLOCK=64, ALL=width, CLEAR=True)\n"
        "    grid = (triton.cdiv(n, 64),)\n"
        "    kernel[grid](x, y, out, n, alpha, BLOCK=64, ALL=width, CLEAR=False)\n",
    )
)
MASKS_BY_A_SCALAR = """
@triton.jit
def kernel(x_ptr, out_ptr, n, n_parts, BLOCK: tl.constexpr):
    part = tl.program_id(0)
    at = part * 4 * BLOCK + tl.arange(0, 4)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    mask = (at < n) & (part < n_parts)
    tl.store(out_ptr + at, tl.maximum(tl.load(x_ptr + at, mask=mask), 0.0), mask=mask)


def triton_relu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    parts = triton.cdiv(x.numel(), 64)
    kernel[(parts,)](x, out, x.numel(), parts, BLOCK=16)
    return out
"""
RIGHT = [
    ("adds_with_atomics", "sum", ADDS_WITH_ATOMICS),
    ("last_to_finish_adds", "mean", LAST_TO_FINISH_ADDS),
    ("adds_under_a_lock", "sum", ADDS_UNDER_A_LOCK),
    ("last_block_overlaps", "vector_add", LAST_BLOCK_OVERLAPS),
    ("one_slot_a_program", "softmax", ONE_SLOT_A_PROGRAM),
    ("all_store_one_flag", "softmax", ALL_STORE_ONE_FLAG),
    ("in_place", "relu", IN_PLACE),
    ("two_launches", "vector_add", TWO_LAUNCHES),
    ("masks_by_a_scalar", "relu", MASKS_BY_A_SCALAR),
]


def run(tmp_path: Path, name: str, op: str, body: str) -> tuple[CaseResult, Path]:
    path = tmp_path / f"{name}.py"
    path.write_text(HEAD.format(name=name, op=op) + body)
    case = Case(shape=SHAPES.get(op, (7, 49)), dtype="float32", seed=1)
    return run_cases(path, case)[0], path


@pytest.mark.parametrize(("name", "op", "body", "words"), RACY, ids=[r[0] for r in RACY])
def test_race_is_reported_with_its_line(
    tmp_path: Path, name: str, op: str, body: str, words: str
) -> None:
    result, path = run(tmp_path, name, op, body)
    assert result.status is CaseStatus.RACE, result
    assert result.error is not None
    assert result.reason is not None
    assert result.reason.startswith("race: program")
    assert words in result.reason
    lines = path.read_text().splitlines()
    assert lines[(result.error.file_line or 0) - 1].endswith("# here")


@pytest.mark.parametrize(("name", "op", "body"), RIGHT, ids=[r[0] for r in RIGHT])
def test_ordered_accesses_are_no_race(tmp_path: Path, name: str, op: str, body: str) -> None:
    result, _ = run(tmp_path, name, op, body)
    assert result.status is CaseStatus.PASSED, result


def test_message_names_both_programs(tmp_path: Path) -> None:
    result, _ = run(tmp_path, "slot", "softmax", SHARES_A_SLOT)
    assert result.reason == "race: programs (0,0,0) and (1,0,0) both store to slot_ptr[0]"
    result, _ = run(tmp_path, "neighbour", "relu", OVERWRITES_ITS_NEIGHBOUR)
    assert result.reason == (
        "race: program (0,0,0) loads buffer_ptr[64], program (1,0,0) stores it"
    )


def test_memory_that_was_never_written_is_nan(tmp_path: Path) -> None:
    body = ONE_SLOT_A_PROGRAM.replace(
        "tl.load(slot_ptr + row)", "tl.load(slot_ptr + row + tl.num_programs(0))"
    ).replace("torch.empty(rows.shape[0],", "torch.empty(2 * rows.shape[0],")
    result, _ = run(tmp_path, "unset", "softmax", body)
    assert result.status is CaseStatus.WRONG_VALUES
    assert result.mismatch is not None
    assert str(result.mismatch.got) == "nan"


def test_wrong_values_come_first_and_name_the_race(tmp_path: Path) -> None:
    stores = ADDS_WITH_ATOMICS.replace("tl.atomic_add(", "tl.store(")
    result, path = run(tmp_path, "stores", "sum", stores)
    assert result.status is CaseStatus.WRONG_VALUES
    assert result.error is not None
    assert result.error.message == ("race: programs (0,0,0) and (0,1,0) both store to out_ptr[0]")
    line = path.read_text().splitlines()[(result.error.file_line or 0) - 1]
    assert line.strip().startswith("tl.store(")


def test_memory_faults_of_the_version_reach_the_judge() -> None:
    """The reply of that process has every fault that a record of a call has."""
    faults = {"damage", "outside", "race"}
    assert faults <= CallRecord.__dataclass_fields__.keys()
    assert faults <= CallReply.model_fields.keys()
