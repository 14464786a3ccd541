# ruff: noqa: F811 (a fixture is imported, and named again by each test that asks for it)
"""The op of another op's gradients, in the lab: its names, facts and jobs."""

from __future__ import annotations

import pytest

from tests.fake_executor import FakeExecutor
from tests.lab_harness import engine, lab  # noqa: F401 (fixtures)
from tests.test_lab_sizes import REFERENCE, own_op
from triton_magics import knowledge
from triton_magics.errors import UnknownOp
from triton_magics.lab import Lab
from triton_magics.model import BackwardFacts
from triton_magics.rendering.views.state import op_page_view

SOURCE = "import triton\n\n\ndef triton_softmax_backward(grad_output, x):\n    return x\n"


def test_backward_op_of_a_shipped_one_goes_through_the_workflow(
    lab: Lab, engine: FakeExecutor
) -> None:
    page = lab.op("softmax_backward")
    assert page.facts.signature == "triton_softmax_backward(grad_output, x)"
    assert page.facts.gradient_of == "softmax"
    lab.write("softmax_backward", "v1", SOURCE, cell_offset=1)
    verdict = lab.validate("softmax_backward", "v1")
    assert verdict.op == "softmax_backward"
    ref = engine.jobs[-1].op
    assert (ref.name, ref.gradient_of, ref.source) == ("softmax_backward", "softmax", None)
    assert (lab.session.path / "kernels/softmax_backward/v1_baseline.py").is_file()
    assert lab.op_state("softmax").versions == ()


def test_backward_op_of_the_users_own_has_its_reference(lab: Lab, engine: FakeExecutor) -> None:
    engine.own_backward = BackwardFacts(output_gradients=("grad_0", "grad_1"), returned=("x",))
    own_op(lab, engine)
    page = lab.op("own_backward")
    assert page.facts.signature == "triton_own_backward(grad_0, grad_1, x)"
    lab.write("own_backward", "v1", SOURCE.replace("softmax", "own"), cell_offset=1)
    ref = engine.jobs[-1].op
    assert (ref.name, ref.gradient_of, ref.source) == ("own_backward", "own", REFERENCE)
    assert ref.shown_path == "own/reference.py"


@pytest.mark.parametrize("name", ["dropout_backward", "softmax_backward_backward", "_backward"])
def test_an_op_without_gradients_has_no_backward_op(lab: Lab, name: str) -> None:
    with pytest.raises(UnknownOp, match=f"unknown op '{name}'"):
        lab.op(name)


def test_backward_names_are_found_and_suggested(lab: Lab) -> None:
    assert knowledge.canonical("layernorm_backward") == "layer_norm_backward"
    with pytest.raises(UnknownOp, match="Did you mean 'softmax_backward'"):
        lab.op("sofmax_backward")
    assert "softmax_backward" in lab.ref("softmax_backward").title
    page = lab.op("layer_norm")
    text = str(op_page_view(page, str))
    assert "layer_norm_backward takes grad_output too" in text
