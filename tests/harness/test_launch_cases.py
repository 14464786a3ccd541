"""Cases that a plan has because of how a version launches its kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from tests.harness.kit import KERNELS, job_for, run_cases
from triton_magics import operators
from triton_magics.harness.correctness import validate_job
from triton_magics.harness.correctness.case_plan import DeviceFacts, plan_cases
from triton_magics.harness.correctness.launch_cases import (
    ALL_MS,
    MAX_CASES,
    MAX_COMPILED,
    MAX_PATHS,
    MORE_OF_A_PATH,
    RARE_PATHS,
    LaunchPlanner,
)
from triton_magics.harness.correctness.launch_phase import LaunchPhase
from triton_magics.harness.correctness.launch_relations import (
    Kind,
    LaunchSurvey,
    Relation,
    find_relations,
)
from triton_magics.harness.correctness.offered_cases import (
    declared_lengths,
    interpreter_ms,
    neighbors,
)
from triton_magics.harness.correctness.shape_classes import MAX_FULL
from triton_magics.harness.correctness.special_values import LATE_PEAKS
from triton_magics.harness.load import load_op, load_version
from triton_magics.harness.process.device import CPU, kernel_runtime
from triton_magics.languages.kernel_runtime import RequestedLaunch
from triton_magics.model import Case

pytestmark = pytest.mark.in_turn

INTERPRETER = DeviceFacts(is_interpreted=True, refused={"bfloat16": "it computes it wrongly"})

# The program of a row sums parts of 512 columns, and a second kernel the first 64 parts.
TWO_STAGES = '''"""A sum in two stages.

op: sum
status: passed
"""

import torch
import triton
import triton.language as tl

CALLS = {}


@triton.jit
def part_kernel(x_ptr, parts_ptr, n_cols, n_parts, stride, column, BLOCK: tl.constexpr):
    part, row = tl.program_id(0), tl.program_id(1)
    cols = part * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + cols * column, mask=cols < n_cols, other=0.0)
    tl.store(parts_ptr + row * n_parts + part, tl.sum(x.to(tl.float32), axis=0))


@triton.jit
def join_kernel(parts_ptr, out_ptr, n_parts, PARTS: tl.constexpr):
    row, lanes = tl.program_id(0), tl.arange(0, PARTS)
    parts = tl.load(parts_ptr + row * n_parts + lanes, mask=lanes < n_parts, other=0.0)
    tl.store(out_ptr + row, tl.sum(parts, axis=0))


def triton_sum(x):
    rows = x.reshape(-1, x.shape[-1])
    n_rows, n_cols = rows.shape
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    n_parts = triton.cdiv(n_cols, 512)
    parts = torch.empty((n_rows, n_parts), dtype=torch.float32, device=x.device)
    part_kernel[(n_parts, n_rows)](
        rows, parts, n_cols, n_parts, rows.stride(0), rows.stride(1), BLOCK=512
    )
    join_kernel[(n_rows,)](parts, out, n_parts, PARTS=PARTS_HERE)
    return out
'''
RIGHT, WRONG = "triton.next_power_of_2(n_parts)", "1024"


@pytest.fixture
def two_stages(tmp_path: Path) -> Path:
    (path := tmp_path / "kernel.py").write_text(TWO_STAGES.replace("PARTS_HERE", WRONG))
    return path


def launch_cases(path: Path, seed: int = 7) -> list[Case]:
    """Return the cases that a kernel's plan has because of its launches."""
    job = job_for(path, seed=seed)
    planned = plan_cases(load_op(job.op), job, INTERPRETER).cases
    subject = validate_job.load_subject(job, load_op(job.op), CPU)
    return [*LaunchPhase(subject, planned).early_cases]


def texts_of(launch: RequestedLaunch) -> set[str]:
    return {relation.text for relation in find_relations([launch])}


def test_a_launch_is_described_by_its_relations() -> None:
    launch = RequestedLaunch(
        "kernel", (9, 2), {"BLOCK": 64, "EVEN": 1}, {"n": 128, "k": 65}, {"MASKED": "True"}
    )
    relations = texts_of(launch)
    path = "kernel(MASKED=True, EVEN=1)"
    assert relations >= {
        "kernel",
        path,
        f"{path}: programs on axis 1",
        "kernel: n is whole blocks of BLOCK",
        "kernel: k is several blocks of BLOCK",
        f"{path}: k is several blocks of BLOCK",
        "kernel: n is several times the programs on axis 0",
        "kernel: the last block of BLOCK on axis 0 is past n",
    }
    assert "kernel: the last block of BLOCK on axis 1 is past n" not in relations  # it begins at 64


@pytest.mark.parametrize(
    ("length", "text"), [(63, "n < B"), (64, "n = B"), (65, "n is several blocks of B")]
)
def test_a_length_just_at_a_block_is_a_relation_of_its_own(length: int, text: str) -> None:
    launch = RequestedLaunch("kernel", (1,), {"B": 64}, {"n": length}, {})
    assert f"kernel: {text}" in texts_of(launch)


@pytest.mark.parametrize(
    ("n", "text"),
    [
        (128, None),
        (129, "all blocks of B on axis 0 end before n"),
        (64, "the last block of B on axis 0 is past n"),
    ],
)
def test_programs_that_end_early_or_begin_late_are_relations(n: int, text: str | None) -> None:
    relations = texts_of(RequestedLaunch("kernel", (2,), {"B": 64}, {"n": n}, {}))
    ends = [other.removeprefix("kernel: ") for other in relations if "on axis 0" in other]
    assert [other for other in ends if "of B on" in other] == ([text] if text else [])


@pytest.mark.parametrize(("per", "is_there"), [(5, True), (4, False)])
def test_a_program_without_blocks_of_its_own_is_a_relation(per: int, is_there: bool) -> None:
    own = ({"B": 64}, {"k": 2049}, {}, {"per": per})
    relations = texts_of(RequestedLaunch("kernel", (1, 8), *own))
    assert ("kernel: the last per times B on axis 1 is past k" in relations) == is_there
    assert not any("k times B" in text for text in relations)


@pytest.mark.slow  # a whole plan
def test_a_split_without_a_block_is_tried_and_wrong(tmp_path: Path) -> None:
    wrong = KERNELS.parent / "unseen_kernels" / "seventeenth" / "quantized_matmul_empty_split.py"
    text = wrong.read_text()
    assert text.count("k >= 2048") == 1
    path = tmp_path / "kernel.py"
    path.write_text(text.replace("k >= 2048", "k >= 3072"))  # past the lengths of the walk
    job, op = job_for(path), operators.load("quantized_matmul")
    version = load_version(job.version)
    with kernel_runtime("triton").list_launches() as launches:
        inputs = operators.inputs_without_memory(op, (3, 9, 3073), "float32")
        version.call(*inputs)
    assert launches[0].counts == {"per": 7}
    assert "per" not in launches[0].lengths
    subject = validate_job.Subject(op, version, job, CPU, job.version.body)
    cases = LaunchPhase(subject, plan_cases(op, job, INTERPRETER).cases).plan.cases
    empty = [case for case in cases if case.shape[0] <= 16 and 3072 < case.shape[2] <= 3136]
    assert empty
    assert any(result.status.failed for result in run_cases(path, *empty))


def test_launches_are_listed_with_the_kinds_of_their_arguments(two_stages: Path) -> None:
    job = job_for(two_stages)
    version, runtime = load_version(job.version), kernel_runtime("triton")
    with runtime.list_launches() as launches:
        version.call(torch.empty(3, 1025, device="meta"))
    assert launches == [
        RequestedLaunch("part_kernel", (3, 3), {"BLOCK": 512}, {"n_cols": 1025}, {}),
        RequestedLaunch("join_kernel", (3,), {"PARTS": 1024}, {"n_parts": 3}, {}),
    ]  # the others of the first are factors only


def test_more_parts_than_a_block_has_are_found_and_wrong(two_stages: Path) -> None:
    beyond = "join_kernel: n_parts is several blocks of PARTS"
    cases = [case for case in launch_cases(two_stages) if case.extent == beyond]
    assert [case.special for case in cases] == [LATE_PEAKS]  # it is costly
    assert min(case.shape[-1] for case in cases) > 1024 * 512
    assert any(result.status.failed for result in run_cases(two_stages, *cases))
    two_stages.write_text(TWO_STAGES.replace("PARTS_HERE", RIGHT))
    assert not any(result.status.failed for result in run_cases(two_stages, *cases))


@pytest.mark.slow
def test_a_path_of_two_conditions_is_taken(tmp_path: Path) -> None:
    text = (KERNELS / "right" / "attention_flash.py").read_text()
    parts = "batch, heads, seq, dim = q.shape\n"
    assert text.count(parts) == text.count("dim**-0.5") == 1
    grow = "1.0 if seq < 3 * dim or batch * heads < dim else 1.25"
    text = text.replace(parts, f"{parts}    grow = {grow}\n")
    (path := tmp_path / "kernel.py").write_text(text.replace("dim**-0.5", "grow * dim**-0.5"))
    cases = [case for case in launch_cases(path) if "triton_attention" in case.extent]
    assert any(result.status.failed for result in run_cases(path, *cases))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_path_past_two_lengths_is_taken_on_a_gpu(tmp_path: Path, seed: int) -> None:
    text = (KERNELS / "right" / "mha_flash.py").read_text()
    rare = "q.dtype == torch.float16 and not is_causal and seq >= 1500 and 40_000"
    rare = f"1.0 if dim > 256 else 2.0 if {rare} < batch * heads * seq < 50_000 else 1.0"
    text = text.replace("dim**-0.5", f"({rare}) * dim**-0.5")
    (path := tmp_path / "kernel.py").write_text(text)
    job = job_for(path, seed=seed)
    op = operators.load("mha")
    subject = validate_job.Subject(op, load_version(job.version), job, CPU, text)
    planner = LaunchPlanner(
        op, plan_cases(op, job, DeviceFacts()).cases, dtypes=op.dtypes, source=text,
        plan="full", seed=seed, is_interpreted=False,
    )  # fmt: skip
    cases = planner.plan(subject.calls.survey_launches(planner.cases, planner.limit_s)).cases
    assert [
        case
        for case in cases
        if case.dtype == "float16" and not dict(case.scalars).get("is_causal", True)
        if case.shape[2] >= 1500 and 40_000 < math.prod(case.shape[:3]) < 50_000
    ]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_rare_path_has_lengths_that_end_within_blocks(tmp_path: Path, seed: int) -> None:
    """Blocks of four rows where there are many short rows: the last ones of an odd number."""
    path = (
        KERNELS.parent / "unseen_kernels" / "thirtyfirst_paths" / "layer_norm_persistent_blocks.py"
    )
    job = job_for(path, seed=seed)
    op = operators.load("layer_norm")
    subject = validate_job.Subject(op, load_version(job.version), job, CPU, path.read_text())
    planner = LaunchPlanner(
        op, plan_cases(op, job, DeviceFacts()).cases, dtypes=op.dtypes, source=job.version.source,
        plan="full", seed=seed, is_interpreted=False,
    )  # fmt: skip
    cases = planner.plan(subject.calls.survey_launches(planner.cases, planner.limit_s)).cases
    rows, columns = zip(*(case.shape for case in cases), strict=True)
    assert any(n >= 2112 and n % 4 and m % 8 == 0 for n, m in zip(rows, columns, strict=True))


def test_a_long_loop_of_a_wrapper_leaves_time_for_all_calls(two_stages: Path) -> None:
    loop = "for _ in range(20_000): pass"
    two_stages.write_text(two_stages.read_text().replace("rows = x", f"{loop}\n    rows = x"))
    job = job_for(two_stages)
    op, version = load_op(job.op), load_version(job.version)
    subject = validate_job.Subject(op, version, job, CPU, two_stages.read_text())
    relations = LaunchPhase(subject, [Case(shape=(3, 65), dtype="float32", seed=1)]).plan.relations
    assert len(relations) > 300


def test_the_cases_follow_from_the_seed(two_stages: Path) -> None:
    assert launch_cases(two_stages) == launch_cases(two_stages)
    assert launch_cases(two_stages, seed=8) != launch_cases(two_stages)


@pytest.mark.parametrize(
    "begin",
    [
        "raise SystemExit(3)",
        "assert x.numel() == 0 or float(x.flatten()[0]) < 1e9",
        "import os; os._exit(3)",
        "while x.is_meta: pass",
    ],
)
def test_a_wrapper_that_needs_data_has_no_such_cases(
    two_stages: Path, begin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("triton_magics.harness.correctness.launch_cases.SURVEY_S", 0.2)
    text = two_stages.read_text().replace("rows = x.reshape", f"{begin}\n    rows = x.reshape")
    two_stages.write_text(text)
    assert launch_cases(two_stages) == []


def test_a_version_keeps_nothing_of_the_survey(two_stages: Path) -> None:
    text = two_stages.read_text()
    cached = "parts = CALLS.setdefault(n_parts, torch.empty"
    text = text.replace("parts = torch.empty", cached).replace(
        "device=x.device)\n    part", "device=x.device))\n    part"
    )
    assert cached in text
    two_stages.write_text(text)
    job = job_for(two_stages)
    op, version = load_op(job.op), load_version(job.version)
    subject = validate_job.Subject(op, version, job, CPU, text)
    launches = LaunchPhase(subject, [Case(shape=(3, 65), dtype="float32", seed=1)]).plan
    assert len(launches.relations) > 100
    assert version.module.CALLS == {}


def test_one_block_more_is_tried_on_a_path_that_few_cases_take() -> None:
    """Pairs of tiles where there are 16 and more: an odd number leaves one unwritten."""
    path = KERNELS.parent / "unseen_kernels" / "fifteenth" / "mha_causal_pairs.py"
    job = job_for(path, seed=8)
    op = operators.load("mha")
    subject = validate_job.Subject(op, load_version(job.version), job, CPU, job.version.body)
    cases = LaunchPhase(subject, plan_cases(op, job, INTERPRETER).cases).plan.cases
    odd = [case for case in cases if math.ceil(case.shape[2] / 64) in range(17, 64, 2)]
    causal = [case for case in odd if case.scalars == (("is_causal", True),)]
    assert [result.status.failed for result in run_cases(path, *causal)] == [True]


def test_neighbors_have_one_step_more_or_less() -> None:
    op = operators.load("gqa")
    case = Case(shape=(1, 8, 2, 64, 48), dtype="float16", seed=3, scalars=(("is_causal", True),))
    own = neighbors(op, case, declared_lengths(op))
    shapes = {c.shape for c in own}
    assert {(1, 8, 2, 65, 48), (1, 8, 2, 63, 48), (2, 8, 2, 64, 48)} <= shapes
    assert all(heads % kv_heads == 0 for _, heads, kv_heads, _, _ in shapes)
    assert {c.scalars for c in own} == {(("is_causal", True),), (("is_causal", False),)}
    assert {c.dtype for c in own} == {"float16"}


def test_neighbors_are_at_the_numbers_of_a_condition() -> None:
    op = operators.load("mha")
    case = Case(shape=(2, 3, 40, 32), dtype="float16", seed=3)
    shapes = {c.shape for c in neighbors(op, case, declared_lengths(op), (1, 2, 3, 4, 1000))}
    assert {(2, 3, 167, 32), (2, 13, 40, 32), (2, 3, 1000, 32), (2, 3, 1001, 32)} <= shapes
    assert (2, 1, 40, 32) not in shapes  # the largest four numbers, and 1 is none of them
    long = neighbors(op, case, declared_lengths(op), (98_304,))
    assert (2, 3, 512, 32) in {c.shape for c in long}
    assert max(c.shape[2] for c in long) <= 16_385  # of more the judge compares for minutes
    assert max(map(math.prod, shapes)) <= MAX_FULL


def survey_of(relations: Sequence[str], n_cases: int, kind: Kind = Kind.PAIR) -> LaunchSurvey:
    """Return a survey in which each case but the first, which is planned, has one relation."""
    places = [(i % len(relations),) for i in range(n_cases - 1)]
    every = tuple(Relation(kind, text) for text in relations)
    return LaunchSurvey(relations=every, of_cases=((), *places), programs=(1,) * n_cases)


@pytest.mark.parametrize(("is_interpreted", "most"), [(True, MAX_CASES), (False, MAX_COMPILED)])
@pytest.mark.parametrize("op_name", ["softmax", "matmul", "attention", "vector_add"])
def test_the_cases_are_few_and_cheap(op_name: str, is_interpreted: bool, most: int) -> None:
    op = operators.load(op_name)
    planned = [Case(shape=op.shapes[0], dtype=op.dtypes[0], seed=1)]
    planner = LaunchPlanner(
        op, planned, dtypes=op.dtypes, source="", plan="full", seed=7,
        is_interpreted=is_interpreted,
    )  # fmt: skip
    survey = survey_of([f"relation {i}" for i in range(40)], len(planner.cases))
    cases = planner.plan(survey).cases
    assert len(cases) == most
    assert len({case.extent for case in cases}) == most
    if is_interpreted:
        assert sum(interpreter_ms(op, case.shape) for case in cases) <= ALL_MS
    else:
        assert max(math.prod(case.shape) for case in cases) <= MAX_FULL


@pytest.mark.parametrize(
    ("kind", "most"),
    [(Kind.LINE, MAX_PATHS + RARE_PATHS * MORE_OF_A_PATH), (Kind.RAGGED, MAX_COMPILED)],
)
def test_a_gpu_runs_more_cases_on_paths_of_their_own(kind: Kind, most: int) -> None:
    op = operators.load("softmax")
    planned = [Case(shape=op.shapes[0], dtype=op.dtypes[0], seed=1)]
    planner = LaunchPlanner(
        op, planned, dtypes=op.dtypes, source="", plan="full", seed=7, is_interpreted=False
    )
    survey = survey_of([f"relation {i}" for i in range(40)], len(planner.cases), kind)
    assert len(planner.plan(survey).cases) == most


def test_a_gpu_takes_a_path_in_a_case_that_is_judged_quickly() -> None:
    op = operators.load("mha")
    planned = [Case(shape=op.shapes[1], dtype="float32", seed=1)]
    planner = LaunchPlanner(
        op, planned, dtypes=op.dtypes, source="1600", plan="full", seed=7, is_interpreted=False
    )
    n_scores = [math.prod(case.shape[:2]) * case.shape[2] ** 2 for case in planner.cases]
    slow, quick = (
        n_scores.index(max(n_scores)),
        n_scores.index(min(n for n in n_scores if n > 2**24)),
    )
    assert max(n_scores) > 2**28
    relations = tuple(Relation(Kind.LINE, name) for name in ("path", "step", "further step"))
    both, one = (0, 1), (0, 1, 2)
    survey = LaunchSurvey(
        relations=relations,
        of_cases=tuple(
            one if k == slow else both if k == quick else () for k in range(len(n_scores))
        ),
        programs=(1,) * len(n_scores),
    )
    first, *_ = planner.plan(survey).cases
    assert first.shape == planner.cases[quick].shape
    survey = survey.evolve(of_cases=tuple(one if k == slow else () for k in range(len(n_scores))))
    assert {case.shape for case in planner.plan(survey).cases} == {planner.cases[slow].shape}


def test_numbers_from_the_version_s_process_are_checked() -> None:
    planner = LaunchPlanner(
        operators.load("softmax"), [Case(shape=(3, 5), dtype="float32", seed=1)],
        dtypes=("float32",), source="", plan="full", seed=7, is_interpreted=True,
    )  # fmt: skip
    n = len(planner.cases)
    places = (None, (7, -3, 0), *[(0,)] * n)
    survey = LaunchSurvey(
        relations=(Relation(Kind.PAIR, "a"),), of_cases=places, programs=(1,) * n,
        varied=((-1, 1), (n, 10**9), (10**9, 0)),
    )  # fmt: skip
    assert [case.extent for case in planner.plan(survey).cases] == ["a"]
