"""Forms job: the inputs and outputs of an op at each of its sizes, on the meta device."""

from __future__ import annotations

from typing import Any

import torch

from triton_magics import operators
from triton_magics.execution.job_answers import Answer, OpForms, SizeForms, TensorForm
from triton_magics.execution.job_requests import FormsJob
from triton_magics.harness.correctness.oracle import evaluate
from triton_magics.harness.load import UserFault, load_op
from triton_magics.harness.process.reporter import Reporter


def run(job: FormsJob, report: Reporter) -> tuple[Answer, bool]:
    """Call the op with tensors that have no memory, once a size."""
    report.stage("reading the shapes of the op")
    op = load_op(job.op)
    try:
        with torch.no_grad():
            sizes = tuple(_forms_at(op, size, shape) for size, shape in op.sizes.items())
    except (RuntimeError, NotImplementedError) as error:
        raise UserFault(f"{op.name}: it needs real data to tell its shapes: {error}") from error
    return OpForms(sizes=sizes), False


def _forms_at(op: operators.Op, size: str, shape: tuple[int, ...]) -> SizeForms:
    inputs = operators.inputs_without_memory(op, shape, op.dtypes[0])
    names = op.input_names(len(inputs))
    outputs = evaluate(op, inputs)[1]
    return SizeForms(
        size=size,
        shape=shape,
        inputs=tuple(_form(name, x) for name, x in zip(names, inputs, strict=True)),
        outputs=tuple(_form(f"output{i or ''}", x) for i, x in enumerate(outputs)),
    )


def _form(name: str, x: Any) -> TensorForm:
    if isinstance(x, torch.Tensor):
        dtype = str(x.dtype).removeprefix("torch.")
        return TensorForm(name=name, dtype=dtype, shape=tuple(x.shape))
    dtype = {bool: "bool", int: "int64"}.get(type(x), "float32")
    return TensorForm(name=name, dtype=dtype, value=x)
