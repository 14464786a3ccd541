"""Inputs from files: each format, the op on them, and what is refused."""

from __future__ import annotations

import base64
import io
import json
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.harness.own_kit import bench, validate, version
from triton_magics import operators
from triton_magics.errors import BadValue
from triton_magics.execution.job_refs import InputFile, OpRef
from triton_magics.harness.load import UserFault
from triton_magics.lab import Lab
from triton_magics.model import (
    SIZES,
    BadgeCode,
    Benchmark,
    CaseStatus,
    NotTimedCode,
    Status,
)
from triton_magics.rendering import to_text, view
from triton_magics.session.input_file import read_input_file

X, Y = torch.arange(6.0).reshape(2, 3), torch.full((2, 3), 2.0)
RELU = "def torch_relu(x):\n    return x.relu()\n"


def safetensors(**tensors: torch.Tensor) -> bytes:
    header, data = {"__metadata__": {"by": "a test"}}, b""
    names = {torch.float32: "F32", torch.float16: "F16", torch.int64: "I64"}
    for name, tensor in tensors.items():
        raw = tensor.numpy().tobytes()
        ends = [len(data), len(data) + len(raw)]
        header[name] = {
            "dtype": names[tensor.dtype], "shape": list(tensor.shape), "data_offsets": ends,
        }  # fmt: skip
        data += raw
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def saved(write: object, *values: object, **named: object) -> bytes:
    buffer = io.BytesIO()
    write(buffer, *values, **named)  # type: ignore[operator]
    return buffer.getvalue()


def torch_file(value: object) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


def op_on(op: str, name: str, content: bytes) -> OpRef:
    data = base64.b64encode(zlib.compress(content)).decode()
    return OpRef(name=op, inputs=InputFile(name=name, data=data))


@pytest.mark.parametrize(
    ("name", "content", "names"),
    [
        ("a.safetensors", safetensors(x=X, y=Y), ["x", "y"]),
        ("a.npz", saved(np.savez, x=X.numpy(), y=Y.numpy()), ["x", "y"]),
        ("a.NPY", saved(np.save, X.numpy()), ["0"]),
        ("a.pt", torch_file({"x": X, "y": Y}), ["x", "y"]),
        ("a.pt", torch_file([X, Y]), ["0", "1"]),
        ("a.pth", torch_file(X), ["0"]),
    ],
)
def test_a_file_of_each_format_is_read(name: str, content: bytes, names: list[str]) -> None:
    tensors = operators.read_tensors(name, content)
    assert list(tensors) == names
    assert torch.equal(tensors[names[0]], X)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.safetensors", safetensors(x=X)[:-4]),
        ("a.safetensors", b"12345678{"),
        ("a.npz", b"no zip"),
        ("a.npy", saved(np.save, np.array([print]), allow_pickle=True)),
        ("a.pt", torch_file(Path("an object"))),
        ("a.pt", torch_file({})),
    ],
)
def test_a_bad_file_is_refused_and_runs_nothing(name: str, content: bytes) -> None:
    with pytest.raises(BadValue, match=f"^--inputs {name}: ."):
        operators.read_tensors(name, content)


def test_tensors_are_taken_by_name_or_in_order() -> None:
    op = operators.load("vector_add")

    def inputs(**tensors: torch.Tensor) -> tuple[object, ...]:
        on_file = operators.on_recorded_inputs(op, "a.npz", tensors)
        draw = torch.Generator()
        return on_file.make_inputs((2, 3), torch.float32, torch.device("cpu"), draw)

    first, second, alpha = inputs(y=Y, x=X, alpha=torch.tensor(3.0))
    assert (first.equal(X), second.equal(Y), alpha) == (True, True, 3.0)
    assert first.data_ptr() != X.data_ptr()
    first, second, alpha = inputs(a=X, b=Y)
    assert (first.equal(X), second.equal(Y), alpha) == (True, True, 1.0)
    with pytest.raises(
        BadValue, match=r"no tensor y; z is no input\. vector_add takes x, y, alpha"
    ):
        inputs(x=X, z=Y)
    with pytest.raises(BadValue, match="float64 tensors; vector_add declares float32"):
        inputs(x=X.double(), y=Y.double())


def test_a_version_is_judged_on_a_file() -> None:
    on_file = op_on("relu", "rare.safetensors", safetensors(x=X - 3))
    right = validate(on_file, RELU, language="torch", plan="full")
    assert (right.status, [c.case.shape for c in right.cases]) == (Status.PASSED, [(2, 3)])
    assert right.coverage.is_spot_check
    assert not right.coverage.is_full
    assert BadgeCode.OWN_INPUTS in {b.code for b in right.badges}
    rare = RELU.replace("x.relu()", "torch.where(x == -3, x, x.relu())")
    wrong = validate(on_file, rare, language="torch")
    assert wrong.failed_cases[0].status is CaseStatus.WRONG_VALUES
    assert "only the inputs of rare.safetensors" in to_text(view(wrong))


def test_gradients_are_judged_on_a_file() -> None:
    source = "def torch_relu_backward(g, x):\n    return g * (x > 0)\n"
    op = op_on("relu_backward", "a.npy", saved(np.save, X.numpy() - 3))
    assert validate(op.evolve(gradient_of="relu"), source, language="torch").passed


def bench_on(content: torch.Tensor, source: str, **changes: object) -> Benchmark:
    ref = version(source, "relu", language="torch")
    op = op_on("relu", "rare.npy", saved(np.save, content.numpy()))
    return bench(op, RELU, versions=(ref,), sizes=("file",), runs=2, **changes)


def test_a_version_is_timed_on_a_file() -> None:
    benchmark = bench_on(X - 3, RELU, op_sizes=SIZES)
    timing = benchmark.timing("v1", "file")
    assert timing is not None
    assert (timing.shape, len(timing.samples_us)) == ((2, 3), 2)
    assert benchmark.op_sizes == SIZES
    assert benchmark.final_us("v1") is None
    rare = RELU.replace("x.relu()", "torch.where(x == -3, x, x.relu())")
    wrong = bench_on(X - 3, rare)
    assert (wrong.status, wrong.not_timed[0].code) == (Status.FAILED, NotTimedCode.WRONG_OUTPUT)


def test_a_file_is_timed_in_its_own_dtype() -> None:
    message = "^--inputs rare.npy: float16 tensors; time them with --dtype float16$"
    with pytest.raises(UserFault, match=message):
        bench_on(X.half(), RELU)
    assert bench_on(X.half(), RELU, dtype="float16").passed


def test_a_file_that_does_not_fit_the_op_is_refused() -> None:
    with pytest.raises(UserFault, match="no tensor weight, bias"):
        validate(op_on("layer_norm", "a.npz", saved(np.savez, x=X.numpy())), RELU)


def test_files_outside_the_workspace_are_not_read(tmp_path: Path) -> None:
    (work := tmp_path / "work").mkdir()
    (tmp_path / "secret.npy").write_bytes(b"1")
    (work / "link.npy").symlink_to(tmp_path / "secret.npy")
    for name in ("../secret.npy", "link.npy", str(tmp_path / "secret.npy")):
        with pytest.raises(BadValue, match="outside the workspace"):
            read_input_file(work, name)
    with pytest.raises(BadValue, match="No such file"):
        read_input_file(work, "x.npy")
    with pytest.raises(BadValue, match=r"ends in \.safetensors"):
        read_input_file(work, "x.csv")


@pytest.mark.slow  # 6 s: a worker
def test_a_lab_validates_and_runs_on_a_file(tmp_path: Path) -> None:
    (tmp_path / "x.npy").write_bytes(saved(np.save, X.numpy()))
    with Lab(tmp_path) as lab:
        lab.op("relu")
        lab.kernel("relu", "v1", RELU, type="torch")
        verdict = lab.validate("relu", "v1", inputs="x.npy")
        assert (verdict.passed, verdict.request.inputs) == (True, "x.npy")
        result = lab.run("relu", "v1", inputs="x.npy")
        assert (result.inputs, result.outputs[0].shape) == ("x.npy", (2, 3))
