"""Evaluate, compare, validate: all faults at once; results, codes, deadlines; nothing stays."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fake_executor import FakeExecutor
from tests.serve.guide_examples import (
    ADD,
    CONTRACT,
    MULTI,
    REFERENCE,
    TRITON,
    evaluation,
    tensor,
)
from tests.serve.serve_kit import ANN, ServerProcess, call, opened
from triton_magics.errors import Unavailable
from triton_magics.execution import Outcome
from triton_magics.execution.job_requests import BenchJob, RunJob, ValidateJob
from triton_magics.model import Status
from triton_magics.serve.guide_requests import EvaluateBody
from triton_magics.serve.guide_run import remove_abandoned


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeExecutor:
    monkeypatch.setenv("TRITON_MAGICS_CACHE", str(tmp_path / "cache"))
    return FakeExecutor()


def fields(answer: Any) -> set[str]:
    assert answer.status_code == 422
    return {fault["field"] for fault in answer.json()["validation_errors"]}


def test_a_kernel_is_judged_and_timed(tmp_path: Path, engine: FakeExecutor) -> None:
    with opened(tmp_path / "w", engine, mode="fastapi") as service:
        body = evaluation(num_trials=20, rtol=1e-3, timer="graph", timeout=30)
        (answer,) = call(service, ("POST", "/evaluate", body))
        result = answer.json()
        assert (answer.status_code, result["status"]) == (200, "passed")
        outcome = result["kernel_exec_result"]
        assert (outcome["compiled"], outcome["correctness"]) == (True, True)
        assert outcome["runtime"] == pytest.approx(0.040)  # the fake's 40 us, in milliseconds
        assert set(outcome["runtime_stats"]) == {
            "mean", "std", "min", "max", "median", "percentile_95", "percentile_99",
        }  # fmt: skip
        assert result["ref_runtime"] == pytest.approx(0.054)
        assert result["speedup"] > 1
        bench = next(job for job in engine.jobs if isinstance(job, BenchJob))
        assert (bench.runs, bench.timer) == (20, "graph")
        validate = next(job for job in engine.jobs if isinstance(job, ValidateJob))
        assert validate.rtol == 1e-3
        assert {limits.job_s for limits in engine.limits[-2:] if limits} >= {30.0}
        (job,) = call(service, ("GET", f"/job/{result['job_id']}", None))
        assert job.json()["title"] == "evaluate triton"
        assert not [*(tmp_path / "cache").rglob("v1*")]  # its workspace is gone
        assert "subject" not in service.lab.op_names()


def test_validate_times_nothing_and_compare_does(tmp_path: Path, engine: FakeExecutor) -> None:
    body = evaluation()
    both = {"ref_kernel": body["reference"], "custom_kernel": body["kernel"]}
    with opened(tmp_path / "w", engine, mode="fastapi") as service:
        first, second = call(service, ("POST", "/validate", body), ("POST", "/compare", both))
        assert first.json()["kernel_exec_result"]["correctness"] is True
        assert first.json()["kernel_exec_result"]["runtime"] is None
        assert second.json()["kernel_exec_result"]["runtime"] is not None
        assert sum(isinstance(job, BenchJob) for job in engine.jobs) == 1


def test_the_servers_environment_sets_the_default_of_metrics(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    body = evaluation()
    assert EvaluateBody.read(body, 10**6).enable_device_metrics is False
    monkeypatch.setenv("ENABLE_DEVICE_METRICS", "true")
    assert EvaluateBody.read(body, 10**6).enable_device_metrics is True
    assert EvaluateBody.read({**body, "metrics": False}, 10**6).enable_device_metrics is False
    off = {**body, "enable_device_metrics": False}
    assert EvaluateBody.read(off, 10**6).enable_device_metrics is False
    monkeypatch.delenv("ENABLE_DEVICE_METRICS")
    assert EvaluateBody.read({**body, "metrics": True}, 10**6).enable_device_metrics is True


def test_an_op_of_the_server_needs_no_contract(tmp_path: Path, engine: FakeExecutor) -> None:
    source = "def triton_softmax(x):\n    return x\n"
    kernel = {"source_code": source, "kernel_type": "triton", "metadata": {"op": "softmax"}}
    with opened(tmp_path / "w", engine, mode="fastapi") as service:
        (answer,) = call(service, ("POST", "/evaluate", {"kernel": kernel}))
        assert answer.json()["kernel_exec_result"]["correctness"] is True
        assert engine.jobs[-1].op.name == "softmax"


@pytest.mark.parametrize(
    ("status", "code"), [("timeout", 500), ("crashed", 500), ("out_of_memory", 200)]
)
def test_a_crash_and_a_timeout_are_500_with_the_whole_result(
    tmp_path: Path, engine: FakeExecutor, status: str, code: int
) -> None:
    with opened(tmp_path / "w", engine, mode="fastapi") as service:
        run = engine.run

        def end(job: Any, **more: Any) -> Outcome:
            is_it = isinstance(job, ValidateJob)
            return Outcome(status=status, detail="it ended") if is_it else run(job, **more)  # type: ignore[arg-type]

        engine.run = end  # type: ignore[method-assign]
        (answer,) = call(service, ("POST", "/evaluate", evaluation()))
        assert (answer.status_code, answer.json()["status"]) == (code, status)
        assert answer.json()["kernel_exec_result"]["correctness"] is False


def test_the_guides_requests_run_unchanged(tmp_path: Path, engine: FakeExecutor) -> None:
    with opened(tmp_path / "w", engine, mode="fastapi") as service:
        first, second = call(service, ("POST", "/evaluate", TRITON), ("POST", "/evaluate", MULTI))
        outcome = first.json()["kernel_exec_result"]
        assert (first.status_code, outcome["compiled"]) == (200, False)
        assert "entry point" in outcome["compilation_error"]
        assert (second.status_code, second.json()["badges"]) == (200, ["no_reference"])
        assert second.json()["kernel_exec_result"]["correctness"] is None
        assert isinstance(engine.jobs[-1], RunJob)


def test_the_old_form_is_a_comparison_and_deprecated(tmp_path: Path, engine: FakeExecutor) -> None:
    text = "def make_inputs(s, d, e, g):\n    return ()\ndef reference(x):\n    return x\n"
    old = {"ref_code": text, "custom_code": "def run(x):\n    return x\n", "num_trials": 5}
    body = evaluation()
    new = {"ref_kernel": body["reference"], "custom_kernel": body["kernel"]}
    with opened(tmp_path / "w", engine, mode="fastapi") as service:
        for form in (old, new):
            (answer,) = call(service, ("POST", "/", form))
            assert (answer.status_code, answer.headers["deprecation"]) == (200, "true")
            assert answer.json()["kernel_exec_result"]["correctness"] is True


@pytest.mark.parametrize("kernel_type", ["triton", "tritan"])
def test_every_fault_of_an_evaluation_is_named_at_once(
    tmp_path: Path, engine: FakeExecutor, kernel_type: str
) -> None:
    body = copy.deepcopy(evaluation(num_trials=0, timeout=1, rtol=2, speed="fast"))
    args = body["kernel"]["io"]["args"]
    args[0]["tensor_spec"]["dtype"] = "float31"
    args[1]["name"] = "x_ptr"
    args[2]["tensor_spec"]["shape"] = [0]
    body["kernel"]["io"]["launch"]["block"] = {"x": 2048}
    body["kernel"]["kernel_type"] = kernel_type
    body["reference"]["kernel_type"] = "tritan"
    with opened(tmp_path / "w", engine, mode="fastapi") as service:
        before = len(engine.jobs)
        (answer,) = call(service, ("POST", "/evaluate", body))
        faults = fields(answer)
        assert {"num_trials", "timeout", "rtol", "speed", "reference.kernel_type"} <= faults
        assert {
            "kernel.io.args[0].tensor_spec.dtype",
            "kernel.io.args[1].name",
            "kernel.io.args[2].tensor_spec.shape[0]",
        } <= faults
        of_type = "kernel.io.launch.block" if kernel_type == "triton" else "kernel.kernel_type"
        assert of_type in faults
        assert len(engine.jobs) == before
        assert service.newest(ANN) == ()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"kernel_type": "cuda", "io": None}, "kernel.io"),
        ({"kernel_type": "triton", "io": None}, "kernel.io"),
        ({"kernel_type": "multi_kernel"}, "kernel.metadata.entry_point"),
        (
            {"kernel_type": "multi_kernel", "metadata": {"entry_point": "nowhere"}},
            "kernel.metadata.entry_point",
        ),
        ({"kernel_type": "fortran"}, "kernel.kernel_type"),
        ({"source_code": ""}, "kernel.source_code"),
        ({"source_code": "x" * 2000}, "kernel.source_code"),
        ({"source": "x"}, "kernel.source"),
    ],
)
def test_a_kernel_that_lacks_something_is_refused(
    tmp_path: Path, engine: FakeExecutor, change: dict[str, Any], field: str
) -> None:
    body = copy.deepcopy(evaluation())
    body["kernel"] |= change
    with opened(tmp_path / "w", engine, mode="fastapi", max_source_bytes=1000) as service:
        (answer,) = call(service, ("POST", "/evaluate", body))
        assert field in fields(answer)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("x = 1\n", "write a function that launches the kernel and returns its output; with io"),
        ("", "is not allowed"),
        ("def f(x):\n    pass\n\n\ndef g(x):\n    pass\n", "metadata.entry_point: f"),
        ("...\n", "no entry point: write a function"),
    ],
)
def test_a_source_without_entry_is_refused_in_words_of_json(
    tmp_path: Path, engine: FakeExecutor, source: str, words: str
) -> None:
    body = copy.deepcopy(evaluation())
    body["kernel"]["source_code"] = source
    with opened(tmp_path / "w", engine, mode="fastapi") as service:
        (answer,) = call(service, ("POST", "/evaluate", body))
        assert words in answer.text
        assert "subject" not in answer.text
        assert "--entry" not in answer.text


def test_a_kernel_without_inputs_is_named_as_such(tmp_path: Path, engine: FakeExecutor) -> None:
    body = {"kernel": {"kernel_type": "torch", "source_code": "x = 1\n"}}
    with opened(tmp_path / "w", engine, mode="fastapi") as service:
        (answer,) = call(service, ("POST", "/evaluate", body))
        error = answer.json()["kernel_exec_result"]["compilation_error"]
        assert error.startswith("the kernel defines no inputs: give the kernel a contract")


def test_metrics_are_read_and_an_unused_option_is_named(
    tmp_path: Path, engine: FakeExecutor
) -> None:
    with opened(tmp_path / "w", engine, mode="fastapi") as service:
        plain, full = call(
            service,
            ("POST", "/validate", evaluation()),
            ("POST", "/validate", evaluation(enable_device_metrics=True, num_warmup=3)),
        )
        metrics = [
            a.json()["kernel_exec_result"]["metadata"]["device_metrics"] for a in (plain, full)
        ]
        assert metrics[0] is None
        assert metrics[1]["kernels"][0]["dram_pct"] == 90.0
        assert metrics[1]["limit"]["kind"] == "memory"
        raw = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
        busy = {"value": 90.0, "raw": raw, "missing": None}
        assert metrics[1]["categories"]["speed_of_light"]["dram_pct"] == busy
        assert metrics[1]["report_path"] is None
        assert "num_warmup_unused" in full.json()["badges"]
        assert "num_warmup_unused" not in plain.json()["badges"]


def test_a_verdict_stands_without_metrics(
    tmp_path: Path, engine: FakeExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = engine.run

    def refuse(job: Any, **more: Any) -> Any:
        if job.starts_tools:
            raise Unavailable("Nsight Compute observes a version from outside a sandbox")
        return run(job, **more)

    engine.run = refuse  # type: ignore[method-assign]
    with opened(tmp_path / "w", engine, mode="fastapi") as service:
        (answer,) = call(service, ("POST", "/validate", evaluation(enable_device_metrics=True)))
    result = answer.json()["kernel_exec_result"]
    assert (answer.status_code, result["correctness"]) == (200, True)
    assert result["metadata"]["device_metrics"]["status"] == "unavailable"
    assert "Nsight Compute" in result["metadata"]["device_metrics"]["message"]


def test_workspaces_of_a_killed_server_are_removed_a_day_later(
    tmp_path: Path, engine: FakeExecutor
) -> None:
    folder = tmp_path / "cache" / "triton_magics" / "evaluations" / "x"
    folder.mkdir(parents=True)
    now = folder.stat().st_mtime
    assert (remove_abandoned(now + 80_000), folder.exists()) == (0, True)
    assert (remove_abandoned(now + 90_000), folder.exists()) == (1, False)


def test_wait_false_gives_a_job(tmp_path: Path, engine: FakeExecutor) -> None:
    with opened(tmp_path / "w", engine, mode="fastapi") as service:
        (answer,) = call(service, ("POST", "/evaluate?wait=false", evaluation()))
        assert answer.status_code == 202
        (job,) = call(service, ("GET", f"/job/{answer.json()['id']}?wait=30", None))
        assert job.json()["value"]["status"] == Status.PASSED.value


# ------------------------------------------------------------------------- a real server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    process = ServerProcess(tmp_path_factory.mktemp("guide"))
    yield process
    process.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "status", "outcome"),
    [
        (ADD, "no_gpu", {"compiled": True, "correctness": True, "runtime": None}),
        (ADD.replace("x + y", "x - y"), "failed", {"compiled": True, "correctness": False}),
        (ADD.replace("* BLOCK", "* 128"), "failed", {"compiled": True, "correctness": False}),
        (ADD.replace("tl.store", "tl.stor"), "compile_error", {"compiled": False}),
    ],
)
def test_a_raw_kernel_in_the_interpreter(
    server: ServerProcess, source: str, status: str, outcome: dict[str, Any]
) -> None:
    with server.client() as client:
        answer = client.post("/evaluate", json=evaluation(source), timeout=200)
        assert (answer.status_code, answer.json()["status"]) == (200, status)
        assert outcome.items() <= answer.json()["kernel_exec_result"].items()
    assert REFERENCE not in server.path.read_text()


@pytest.mark.slow
def test_the_guides_requests_on_a_real_server(server: ServerProcess) -> None:
    with server.client() as client:
        first = client.post("/evaluate", json=TRITON, timeout=200).json()
        second = client.post("/evaluate", json=MULTI, timeout=200).json()
        assert first["kernel_exec_result"]["compiled"] is False
        assert "missing 1 required positional" in second["kernel_exec_result"]["validation_error"]


@pytest.mark.slow
def test_the_request_of_the_page_is_right(server: ServerProcess) -> None:
    page = (Path(__file__).parents[2] / "docs" / "server.md").read_text()
    (text,) = re.findall(r"^    \{\n.*?^    \}$", page, re.S | re.M)
    with server.client() as client:
        answer = client.post("/evaluate", json=json.loads(text), timeout=200)
    outcome = answer.json()["kernel_exec_result"]
    assert (outcome["compiled"], outcome["correctness"]) == (True, True)


CUDA = """__global__ void add(const float* x_ptr, const float* y_ptr, float* out_ptr, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out_ptr[i] = x_ptr[i] + y_ptr[i];
}
"""
SCALE = """import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(x_ptr + offsets, 2 * x, mask=offsets < n)
"""
MODEL = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(16, 64)]
"""


@pytest.mark.slow
def test_cuda_is_not_judged_without_a_gpu(server: ServerProcess) -> None:
    io = {
        "args": CONTRACT["args"][:4],
        "launch": {"grid": {"x": 4}, "block": {"x": 256}},
    }
    body = evaluation()
    body["kernel"] = {"source_code": CUDA, "kernel_type": "cuda", "io": io}
    with server.client() as client:
        result = client.post("/evaluate", json=body, timeout=200).json()
    assert (result["status"], result["kernel_exec_result"]["correctness"]) == ("no_gpu", None)
    assert "GPU" in result["message"]


@pytest.mark.slow
@pytest.mark.parametrize(("factor", "is_right"), [("2 *", True), ("3 *", False)])
def test_an_argument_that_is_changed(server: ServerProcess, factor: str, is_right: bool) -> None:
    args = [tensor("x_ptr", "inout", init={"kind": "randn"}), *CONTRACT["args"][3:]]
    source = SCALE.replace("2 *", factor)
    kernel = {
        "source_code": source,
        "kernel_type": "triton",
        "io": {"args": args, "launch": {"grid": 4}},
    }
    reference = {"source_code": "def scale(x):\n    x.mul_(2)\n", "kernel_type": "torch"}
    with server.client() as client:
        body = {"kernel": kernel, "reference": reference}
        result = client.post("/validate", json=body, timeout=200).json()
    assert result["kernel_exec_result"]["correctness"] is is_right


@pytest.mark.slow
@pytest.mark.parametrize(("bound", "is_right"), [("min=0", True), ("min=-1", False)])
def test_a_model_with_its_inputs_needs_no_contract(
    server: ServerProcess, bound: str, is_right: bool
) -> None:
    new = MODEL.replace("Model(", "ModelNew(").replace("relu(x)", f"clamp(x, {bound})")
    body = {
        "ref_kernel": {"source_code": MODEL, "kernel_type": "torch"},
        "custom_kernel": {"source_code": new, "kernel_type": "torch"},
    }
    with server.client() as client:
        result = client.post("/compare", json=body, timeout=200).json()
    assert result["kernel_exec_result"]["correctness"] is is_right
