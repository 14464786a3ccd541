"""The versions of gradients in the ops' notebooks: right on small inputs, and compiled."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import torch

from scripts import op_texts
from tests.harness.kit import CPU
from tests.harness.test_op_kernels import compile_jobs, version_ref
from triton_magics import languages, operators
from triton_magics.execution.job_refs import OpRef, VersionRef
from triton_magics.execution.job_requests import CompileJob, ValidateJob
from triton_magics.harness.correctness import one_case, oracle, validate_job
from triton_magics.harness.correctness.fused_attention import FusedAttention
from triton_magics.harness.correctness.perturbed_arithmetic import PerturbedArithmetic, RandomSigns
from triton_magics.harness.load import load_op, load_version
from triton_magics.harness.process.fake_gpu import fake_gpu
from triton_magics.model import Case, CaseStatus

pytestmark = pytest.mark.in_turn

SOURCES = {
    (op, version): source
    for op in op_texts.known_ops()
    for version, source in op_texts.kernels(f"{op}_backward").items()
}
VERSIONS = sorted(SOURCES)
ATTENTION = [version for op, version in VERSIONS if op == "attention"]
WIDE = """\
from triton_magics.operators.attention import *
SIZES = {"few": (1, 2, 250, 128), "many": (16, 16, 512, 128), "rest": (16, 16, 500, 64)}
"""


def gradients_of(op: str) -> OpRef:
    return OpRef(name=f"{op}_backward", gradient_of=op)


def gradient_version(folder: Path, op: str, version: str) -> VersionRef:
    source = SOURCES[op, version]
    entry, _ = languages.get("triton").parse(source, op=f"{op}_backward")
    ref = version_ref(folder, op, version, source)
    return ref.model_copy(update={"entry": entry, "op": gradients_of(op)})


def cases_of(op: str) -> tuple[Case, ...]:
    """Return cases of the op's small shapes: of each dtype, strided, and with a huge element."""
    every = operators.load(op).shapes
    small = [s for s in every if torch.Size(s).numel() < 3000][:4]
    shape = next(s for s in small if 1 not in s or len(s) == 4)
    return (
        *(Case(shape=s, dtype="float32", seed=i) for i, s in enumerate(small)),
        Case(shape=shape, dtype="float16", seed=5),
        Case(shape=shape, dtype="float32", layouts=(("*", "transposed"),), seed=6),
        Case(shape=shape, dtype="float32", special="huge element", seed=7),
    )


@pytest.mark.parametrize(("op", "version"), VERSIONS)
def test_gradients_are_right_on_small_inputs(op: str, version: str, tmp_path: Path) -> None:
    ref = gradient_version(tmp_path, op, version)
    job = ValidateJob(op=gradients_of(op), version=ref, seed=7)
    subject = validate_job.Subject(
        load_op(job.op), load_version(ref), job, CPU, SOURCES[op, version]
    )
    for case in cases_of(op):
        result = one_case.run_case(subject, case)[0]
        assert result.status is CaseStatus.PASSED, (case.label, result)


@pytest.mark.parametrize("version", ATTENTION)
@pytest.mark.parametrize("shape", [(1, 2, 70, 16), (1, 1, 33, 80), (1, 1, 17, 160), (1, 1, 1, 20)])
def test_a_key_with_all_the_weight_leaves_little(
    version: str, shape: tuple[int, ...], tmp_path: Path
) -> None:
    op = load_op(gradients_of("attention"))
    call = load_version(gradient_version(tmp_path, "attention", version)).call
    grad, q, k, v = op.make_inputs(shape, torch.float32, CPU, torch.Generator().manual_seed(3))
    q[..., 0], k[:, :, -1, 0] = 100.0, 1e4
    with fake_gpu(CPU):
        dq, dk, dv = call(grad, q, k, v)
    case = Case(shape=shape, dtype="float32", seed=3)
    expected = oracle.compute_expected(op, (grad, q, k, v), case, None, None)
    assert expected.values[0].abs().max() < 1e-6  # what rounding leaves is multiplied by 10,000
    assert max(j.error_share for j in expected.judge_outputs((dq, dk, dv))) < 0.3
    torch.testing.assert_close(dv[:, :, -1], grad.sum(2))
    assert dv[:, :, :-1].eq(0).all()


def test_gradients_of_attention_compile_without_spills(tmp_path: Path) -> None:
    digest = hashlib.sha256(WIDE.encode()).hexdigest()
    op = OpRef(name="wide_backward", gradient_of="wide", source=WIDE, sha256=digest)
    jobs = [
        CompileJob(
            op=op, version=gradient_version(tmp_path, "attention", version), dtype="bfloat16",
            sizes=("few", "many", "rest"),
        )
        for version in ATTENTION
    ]  # fmt: skip
    for answer in compile_jobs(jobs):
        assert (answer["status"], answer["note"]) == ("passed", None)
        forms = [(kernel["name"], kernel["spill_bytes"]) for kernel in answer["kernels"]]
        assert len(forms) >= 9, "three kernels at three sizes"
        assert {spilled for _, spilled in forms} == {0}, forms


@pytest.mark.parametrize("is_causal", [False, True])
def test_perturbed_gradients_of_attention_stay_near(is_causal: bool) -> None:
    generator = torch.Generator().manual_seed(1)
    grad, *inputs = (
        torch.randn(1, 2, 9, 16, dtype=torch.float64, generator=generator) for _ in range(4)
    )

    def gradients() -> tuple[torch.Tensor, ...]:
        leaves = [x.clone().requires_grad_() for x in inputs]
        out = torch.nn.functional.scaled_dot_product_attention(*leaves, is_causal=is_causal)
        return torch.autograd.grad(out, leaves, grad)

    with PerturbedArithmetic(1e-7, RandomSigns(1), coherent=False), FusedAttention():
        moved = gradients()
    for there, here in zip(moved, gradients(), strict=True):
        assert 1e-9 < (there - here).abs().max() < 1e-5


def test_products_that_cancel_are_left_out_for_attention() -> None:
    name = "products past 65504"
    assert name in load_op(gradients_of("attention")).skip_values
    assert name not in operators.load("attention").skip_values
    assert name not in load_op(gradients_of("matmul")).skip_values
