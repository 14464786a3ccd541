"""Problems of the form of KernelBench as ops: what a probe finds, and the verdicts on versions."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.harness.kit import Recorder
from tests.harness.own_kit import KERNEL_HEAD, describe, validate
from triton_magics.execution.job_answers import Findings
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import ProbeJob
from triton_magics.harness.correctness import probe_job
from triton_magics.harness.correctness.comparison import passes_problem_rule
from triton_magics.harness.load import UserFault
from triton_magics.model import Badge, BadgeCode, Status
from triton_magics.operators import load_file
from triton_magics.problems import read_problem
from triton_magics.problems.draft import BREAK, MARK, Draft

pytestmark = pytest.mark.in_turn

GIB = 1 << 30
HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
SCALE = (
    HEAD
    + """
class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(features) + 0.5)

    def forward(self, x):
        return torch.relu(x) * self.scale

batch_size = 4096
features = 64

def get_inputs():
    return [torch.rand(batch_size, features) - 0.5]

def get_init_inputs():
    return [features]
"""
)
KERNEL = (
    KERNEL_HEAD
    + """

@triton.jit
def kernel(x_ptr, scale_ptr, y_ptr, n, features, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    scale = tl.load(scale_ptr + offsets % features, mask=mask)
    tl.store(y_ptr + offsets, tl.maximum(x, 0.0) * SCALE, mask=mask)


def triton_own(x, scale):
    x = x.contiguous()
    y = torch.empty_like(x)
    grid = (triton.cdiv(x.numel(), 1024),)
    kernel[grid](x, scale.contiguous(), y, x.numel(), scale.numel(), BLOCK=1024)
    return y
"""
)


def module(forward: str, *, init: str = "pass", inputs: str, numbers: str, args: str = "x") -> str:
    """Return a problem whose model has no constructor arguments."""
    return (
        f"{HEAD}\nclass Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        f"        {init}\n\n    def forward(self, {args}):\n        return {forward}\n\n"
        f"{numbers}\n\n"
        f"def get_inputs():\n    return [{inputs}]\n\ndef get_init_inputs():\n    return []\n"
    )


def import_problem(folder: Path, source: str, *, max_bytes: int = 16 * GIB) -> tuple[str, Findings]:
    """Return the op's text and what the probe found."""
    path = folder / "1_Problem.py"
    path.write_text(source)
    return import_draft(read_problem(path, "own"), max_bytes=max_bytes)


def import_draft(draft: Draft, *, max_bytes: int = 16 * GIB) -> tuple[str, Findings]:
    """Return the op's text of a draft, and what the probe found."""
    candidates = list(draft.candidates())
    refs = tuple(OpRef.own("own", draft.write(each)) for each in candidates)
    batch = tuple(draft.batch_position(each.dims) for each in candidates)
    job = ProbeJob(op=refs[0], drafts=refs, batch=batch, max_bytes=max_bytes)
    findings, _ = probe_job.run(job, Recorder())
    assert isinstance(findings, Findings)
    return draft.finish(findings, candidates[findings.draft]), findings


def test_weights_are_inputs_behind_those_of_forward(tmp_path: Path) -> None:
    text, findings = import_problem(tmp_path, SCALE)
    assert findings.input_names == ("x", "scale")
    assert findings.sizes == {"given": (4096,)}  # 2 MiB: small enough for the interpreter
    assert findings.shapes == ((1,), (2,), (3,), (5,), (7,))
    assert text.startswith(SCALE + BREAK + MARK)
    description = describe(text)
    assert description.signature == "(x, scale)"
    assert description.outputs == ("[1, 64] float32",)


def test_reference_and_version_share_the_weights(tmp_path: Path) -> None:
    text, _ = import_problem(tmp_path, SCALE)
    assert validate(text, KERNEL.replace("SCALE", "scale")).passed
    assert validate(text, KERNEL.replace("SCALE", "1.0")).status is Status.FAILED


def problem_badge(text: str, kernel: str) -> tuple[bool, Badge]:
    validation = validate(text, kernel)
    (badge,) = (b for b in validation.badges if b.code is BadgeCode.PROBLEM_RULE)
    return validation.passed, badge


def test_the_rule_of_the_problem_is_a_second_verdict(tmp_path: Path) -> None:
    text, _ = import_problem(tmp_path, SCALE)
    right, badge = problem_badge(text, KERNEL.replace("SCALE", "scale"))
    accepted, cases = badge.params["accepted"], badge.params["cases"]
    assert right
    assert accepted == cases > 0
    # 0.5 % too much: within the problem's 1 %, far outside what float32 allows.
    loose, badge = problem_badge(text, KERNEL.replace("SCALE", "scale * 1.005"))
    assert not loose
    assert badge.params == {"accepted": cases, "cases": cases}
    wrong, badge = problem_badge(text, KERNEL.replace("SCALE", "scale * 1.5"))
    assert not wrong
    assert badge.params["accepted"] == 0


@pytest.mark.parametrize(
    ("error", "tolerance", "accepted"),
    [
        (0.009, {"atol": 0.01}, True),
        (0.011, {"atol": 0.01}, False),
        (0.011, {"rtol": 0.02}, True),
        (0.011, {"atol": 0.01, "matched_ratio": 0.9}, True),
        (0.011, {"atol": 0.01, "matched_ratio": 0.95}, False),
    ],
)
def test_the_rule_of_a_problem_is_applied_as_stated(
    error: float, tolerance: dict[str, float], accepted: bool
) -> None:
    expected = torch.ones(10)
    got = expected.clone()
    got[0] += error
    assert passes_problem_rule(got, expected, tolerance) is accepted


def test_inputs_and_weights_follow_seed_and_dtype(tmp_path: Path) -> None:
    text, _ = import_problem(tmp_path, SCALE)
    (tmp_path / "op.py").write_text(text)
    op = load_file(tmp_path / "op.py", "own")

    def inputs(seed: int, dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, ...]:
        generator = torch.Generator().manual_seed(seed)
        return op.make_inputs((3,), dtype, torch.device("cpu"), generator)

    assert torch.equal(inputs(1)[0], inputs(1)[0])
    assert not torch.equal(inputs(1)[0], inputs(2)[0])
    assert torch.equal(inputs(1)[1], inputs(2)[1])
    double = op.reference(*inputs(1, torch.float64))
    assert double.dtype == torch.float64
    assert double.shape == (3, 64)


def test_a_large_problem_gets_a_smaller_batch(tmp_path: Path) -> None:
    text, findings = import_problem(tmp_path, SCALE, max_bytes=1 << 20)
    # 2048 x 64 floats, in and out, and the weights are 2^20 + 256 bytes: one halving more.
    assert findings.sizes == {"reduced": (1024,)}
    assert "# given is (1024,), not (4096,)" in text


def test_a_large_problem_gets_a_small_size_too(tmp_path: Path) -> None:
    source = SCALE.replace("batch_size = 4096", "batch_size = 1024 * 1024")
    _, findings = import_problem(tmp_path, source)
    assert findings.sizes == {"small": (7,), "given": (1 << 20,)}


def test_free_dimensions_are_all_varied(tmp_path: Path) -> None:
    source = module(
        "torch.softmax(x, dim=1)", inputs="torch.rand(rows, dim)", numbers="rows = 16\ndim = 4 * 64"
    )
    _, findings = import_problem(tmp_path, source)
    assert findings.sizes == {"given": (16, 256)}
    assert {(1, 1), (7, 13), (2, 1025)} <= set(findings.shapes)


def conv(size: int) -> str:
    return module(
        "self.conv(x)",
        init=f"self.conv = nn.Conv2d(3, 4, {size})",
        inputs="torch.rand(batch_size, 3, height, width)",
        numbers="batch_size = 4\nheight = 64\nwidth = 64",
    )


def test_shapes_are_moderate_where_tiny_ones_fail(tmp_path: Path) -> None:
    text, findings = import_problem(tmp_path, conv(5))
    assert "dims=('batch_size', 'height', 'width')" in text
    assert (2, 17, 18) in findings.shapes
    assert min(min(shape[1:]) for shape in findings.shapes) > 4


def test_only_the_batch_varies_where_other_shapes_fail(tmp_path: Path) -> None:
    text, findings = import_problem(tmp_path, conv(40))
    assert "dims=('batch_size',)" in text
    assert findings.shapes == ((1,), (2,), (3,), (5,), (7,))


def test_a_problem_without_dimensions_has_one_shape(tmp_path: Path) -> None:
    source = module("x + y", inputs="torch.rand(4, 8), torch.rand(4, 8)", numbers="", args="x, y")
    _, findings = import_problem(tmp_path, source)
    assert (findings.sizes, findings.shapes) == ({"given": (1,)}, ())


@pytest.mark.parametrize("n_cols", [1, 8])  # masks of one element are equal half of the time
def test_dropout_is_evaluated_with_a_note(tmp_path: Path, n_cols: int) -> None:
    source = module(
        "self.drop(x)",
        init="self.drop = nn.Dropout(0.5)",
        inputs=f"torch.rand(batch_size, {n_cols})",
        numbers="batch_size = 4",
    )
    text, _ = import_problem(tmp_path, source)
    assert "training=False" in text
    assert "eval()" in text


def test_statistics_of_a_batch_norm_are_no_inputs(tmp_path: Path) -> None:
    source = module(
        "self.norm(x)",
        init="self.norm = nn.BatchNorm1d(8)",
        inputs="torch.rand(batch_size, 8)",
        numbers="batch_size = 64",
    )
    text, findings = import_problem(tmp_path, source)
    assert findings.input_names == ("x", "norm_weight", "norm_bias")
    assert "training=True" in text
    assert (1,) not in findings.shapes  # one row has no variance


def test_a_state_that_forward_replaces_stays_for_the_next_call(tmp_path: Path) -> None:
    source = module(
        "self.step(x)",
        init="self.hidden = torch.rand(1, 8)\n\n    def step(self, x):\n"
        "        self.hidden = torch.tanh(self.hidden + x)\n        return self.hidden",
        inputs="torch.rand(batch_size, 8)",
        numbers="batch_size = 4",
    )
    text, findings = import_problem(tmp_path, source)
    assert findings.input_names == ("x", "hidden")
    describe(text)


@pytest.mark.parametrize(
    ("forward", "message"),
    [
        ("x + torch.rand_like(x)", "output is random"),
        ("x @ torch.rand(3, 3)", "reference"),
        ("x.tolist()", "no tensor"),
    ],
)
def test_a_problem_that_can_be_no_op_is_refused(tmp_path: Path, forward: str, message: str) -> None:
    source = module(forward, inputs="torch.rand(batch_size, 8)", numbers="batch_size = 4")
    with pytest.raises(UserFault, match=message):
        import_problem(tmp_path, source)


def test_a_problem_too_large_for_this_machine_is_refused(tmp_path: Path) -> None:
    drawn = "torch.full((1 << 20, 1 << 11), torch.rand(1).item())"  # 8 GiB, not on a meta device
    source = module("x + 1", inputs=drawn, numbers="")
    with pytest.raises(UserFault, match="too large for this machine"):
        import_problem(tmp_path, source)


def test_values_without_a_finite_output_are_left_out(tmp_path: Path) -> None:
    source = module("torch.log(x)", inputs="torch.rand(batch_size, 8)", numbers="batch_size = 4")
    _, findings = import_problem(tmp_path, source)
    assert {"negative", "shifted", "zeros"} <= set(findings.skip_values)
    assert "x10" not in findings.skip_values
