"""REST: verbs, jobs, events, health, figures, and every fault of a request at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fake_executor import FakeExecutor
from tests.serve.serve_kit import ANN, SOURCE, Gate, bearer, call, opened, submit
from triton_magics import verbs
from triton_magics.execution.protocol import Progress
from triton_magics.model import Status
from triton_magics.serve.job_model import JobView
from triton_magics.serve.rest import offered_verbs
from triton_magics.serve.server_stats import ServerStats, prometheus_text

VALIDATE = {"op": "softmax", "version": "v1"}


@pytest.fixture
def engine() -> FakeExecutor:
    return FakeExecutor()


def test_a_verb_is_a_job_with_its_value(tmp_path: Path, engine: FakeExecutor) -> None:
    with opened(tmp_path, engine, mode="fastapi") as service:
        (answer,) = call(service, ("POST", "/v1/validate", VALIDATE))
        body = answer.json()
        assert (answer.status_code, body["state"]) == (200, "completed")
        assert body["value"]["status"] == "passed"
        assert answer.headers["x-job-id"] == body["id"]
        assert answer.headers["cache-control"] == "no-store"
        (again,) = call(service, ("GET", f"/job/{body['id']}", None))
        assert again.json()["value"] == body["value"]


def test_a_kernel_that_fails_is_a_result(tmp_path: Path, engine: FakeExecutor) -> None:
    with opened(tmp_path, engine, mode="fastapi") as service:
        engine.verdicts[service.lab.session.source("softmax", "v1").sha256] = Status.FAILED
        (answer,) = call(service, ("POST", "/v1/validate", VALIDATE))
        assert (answer.status_code, answer.json()["value"]["status"]) == (200, "failed")


def test_a_version_is_written_validated_and_read(tmp_path: Path, engine: FakeExecutor) -> None:
    kernel = {"op": "softmax", "version": "v2", "source": SOURCE.format("v2")}
    with opened(tmp_path, engine, mode="fastapi") as service:
        answers = call(
            service,
            ("POST", "/v1/kernel", kernel),
            ("POST", "/v1/validate", {"op": "softmax", "version": "v2"}),
            ("POST", "/v1/source", {"op": "softmax", "version": "v2"}),
            ("POST", "/v1/status", {"op": "softmax"}),
        )
        assert [answer.status_code for answer in answers] == [200] * 4
        assert answers[2].json()["id"] is None  # it needs no device: no job
        assert SOURCE.format("v2") in json.dumps(answers[2].json()["value"]).replace("\\n", "\n")


def test_every_verb_has_a_route(tmp_path: Path, engine: FakeExecutor) -> None:
    with opened(tmp_path, engine, mode="fastapi") as service:
        paths = [f"/v1/{verb.name}" for verb in offered_verbs()]
        assert len(paths) == sum(not verb.reads_files for verb in verbs.every())
        answers = call(service, *(("POST", path, {"nonsense": 1}) for path in paths))
        for path, answer in zip(paths, answers, strict=True):
            fields = [fault["field"] for fault in answer.json()["validation_errors"]]
            assert (path, answer.status_code, "nonsense" in fields) == (path, 422, True)


def test_every_fault_of_a_request_is_named_at_once(tmp_path: Path, engine: FakeExecutor) -> None:
    body = {"op": 3, "plan": "fast", "shapes": [[4, 0]], "rtol": 7, "versin": "v1"}
    with opened(tmp_path, engine, mode="fastapi") as service:
        n_jobs = len(engine.jobs)
        (answer,) = call(service, ("POST", "/v1/validate", body))
        fields = {fault["field"] for fault in answer.json()["validation_errors"]}
        assert answer.status_code == 422
        assert fields == {"op", "version", "plan", "shapes[0]", "rtol", "versin"}
        assert answer.json()["status"] == "client_error"
        assert len(engine.jobs) == n_jobs
        (answer,) = call(service, ("POST", "/v1/validate", {"op": "softmux", "plan": "fast"}))
        faults = {each["field"]: each["message"] for each in answer.json()["validation_errors"]}
        assert faults.keys() == {"op", "version", "plan"}
        assert "Did you mean 'softmax'?" in faults["op"]


@pytest.mark.parametrize(
    ("path", "body", "fields"),
    [
        ("/v1/validate", {"version": "v7", "dtypes": ["float32", "float31"]}, "dtypes[1] version"),
        ("/v1/validate", {"version": "v7", "plan": "fast"}, "version plan"),
        ("/v1/validate", {"version": "all", "dtypes": ["x", "y"]}, "dtypes[0] dtypes[1]"),
        ("/v1/bench", {"versions": ["v1", "v7"], "sizes": ["huge"]}, "versions[1] sizes[0]"),
        ("/v1/profile", {"version": "v7", "size": "huge"}, "version size"),
        ("/v1/kernel", {"version": "v7", "source": 3}, "source"),
    ],
)
def test_unknown_names_are_named_at_once(
    tmp_path: Path, engine: FakeExecutor, path: str, body: dict[str, Any], fields: str
) -> None:
    with opened(tmp_path, engine, mode="fastapi") as service:
        (answer,) = call(service, ("POST", path, {"op": "softmax", **body}))
        assert answer.status_code == 422
        named = {fault["field"] for fault in answer.json()["validation_errors"]}
        assert named == set(fields.split())


@pytest.mark.parametrize(
    ("method", "path", "body", "fields"),
    [
        ("POST", "/v1/validate?wait=soon&wiat=1", {"op": 3}, {"wait", "wiat", "op", "version"}),
        (
            "POST",
            "/evaluate?wait=-1",
            {"kernl": {}, "rtol": "x"},
            {"wait", "kernel", "kernl", "rtol"},
        ),
        ("POST", "/?wiat=1", {"ref_code": 1}, {"wiat", "ref_code", "custom_code"}),
        ("POST", "/admin/cleanup-jobs?a=1", {"older_than_s": -1}, {"a", "older_than_s"}),
        ("GET", "/jobs?limit=-1&offset=2", None, {"limit", "offset"}),
        ("GET", "/stats?format=xml&a=1", None, {"format", "a"}),
        ("GET", "/job/x?wait=no", None, {"wait"}),
        ("GET", "/health?verbose=1", None, {"verbose"}),
    ],
)
def test_faults_of_query_and_body_are_named_at_once(
    tmp_path: Path, engine: FakeExecutor, method: str, path: str, body: Any, fields: set[str]
) -> None:
    with opened(tmp_path, engine, mode="fastapi") as service:
        (answer,) = call(service, (method, path, body))
        assert answer.status_code == 422
        assert {fault["field"] for fault in answer.json()["validation_errors"]} == fields
        assert service.newest(ANN) == ()


@pytest.mark.parametrize(
    ("path", "body", "messages"),
    [
        ("/evaluate", {"kernel": {"meta": 1}, "timout": 9},
         ["kernel.meta: no such field. Did you mean 'metadata'? Allowed: source_code, kernel_type,",
          "timout: no such field. Did you mean 'timeout'? Allowed: num_warmup, rtol"]),
        ("/evaluate", {"kernel": {}, "num_trials": "many", "timeout": -1},
         ["kernel.source_code: is missing",
          "num_trials: 'many' is not allowed, only a whole number",
          "timeout: -1 is not allowed, only a number from 5"]),
        ("/v1/op", {"op": "softmax", "shapes": "8x8"}, ["shapes='8x8': write a list"]),
        ("/v1/sweep", {"op": "softmax", "version": "v1", "knobs": {"BLOCK": "64"}},
         ["knobs.BLOCK='64': write a list"]),
        ("/v1/ref", {"words": {"a": 1}}, ["write a list"]),
    ],
)  # fmt: skip
def test_a_fault_says_what_is_allowed(
    tmp_path: Path, engine: FakeExecutor, path: str, body: Any, messages: list[str]
) -> None:
    with opened(tmp_path, engine, mode="fastapi") as service:
        (answer,) = call(service, ("POST", path, body))
        assert answer.status_code == 422
        for message in messages:
            assert message in answer.json()["message"]


@pytest.mark.parametrize(
    ("method", "path", "code", "message"),
    [
        ("POST", "/v1/valdate", 404, "no route /v1/valdate. Did you mean '/v1/validate'?"),
        ("GET", "/nothing/like/it", 404, "no route /nothing/like/it."),
        ("GET", "/v1/validate", 405, "/v1/validate takes POST"),
        ("DELETE", "/health", 405, "/health takes GET"),
    ],
)
def test_an_unknown_route_names_the_nearest(
    tmp_path: Path, engine: FakeExecutor, method: str, path: str, code: int, message: str
) -> None:
    with opened(tmp_path, engine, mode="fastapi") as service:
        (answer,) = call(service, (method, path, None))
        assert (answer.status_code, answer.json()["message"]) == (code, message)
        assert answer.json()["status"] == "client_error"
        assert answer.headers.get("allow") == (message.rpartition(" ")[2] if code == 405 else None)


@pytest.mark.parametrize(
    ("path", "body", "code", "error"),
    [
        ("/v1/validate", {"op": "softmux", "version": "v1"}, 404, "UnknownOp"),
        ("/v1/validate", {"op": "softmax", "version": "v7"}, 404, "UnknownVersion"),
        ("/v1/bench", {"op": "gelu"}, 404, "UnknownVersion"),
        ("/nowhere", {}, 404, None),
    ],
)
def test_an_error_of_the_caller_has_its_code(
    tmp_path: Path, engine: FakeExecutor, path: str, body: dict[str, Any], code: int, error: str
) -> None:
    with opened(tmp_path, engine, mode="fastapi") as service:
        (answer,) = call(service, ("POST", path, body))
        assert answer.status_code == code
        content = answer.json()
        assert error in (None, content.get("error"), (content.get("fault") or {}).get("error"))


def test_a_forbidden_step_is_a_conflict(tmp_path: Path, engine: FakeExecutor) -> None:
    with opened(tmp_path, engine, mode="fastapi") as service:
        service.lab.settings.strict = True
        (answer,) = call(service, ("POST", "/v1/best", {"op": "softmax"}))
        assert (answer.status_code, answer.json()["error"]) == (409, "IllegalStep")


@pytest.mark.parametrize("text", [b"{", b"[1]", b'"x"', b"[" * 100_000, b'{"a": NaN}', b"\xff"])
def test_a_body_that_is_no_json_object_is_refused(
    tmp_path: Path, engine: FakeExecutor, text: bytes
) -> None:
    import asyncio

    import httpx

    from tests.serve.serve_kit import BASE, TOKENS
    from triton_magics.serve.app import create_app
    from triton_magics.serve.tokens import Tokens

    with opened(tmp_path, engine, mode="fastapi") as service:
        transport = httpx.ASGITransport(create_app(service, Tokens(TOKENS)))
        headers = {**bearer(), "Content-Type": "application/json"}

        async def send() -> httpx.Response:
            async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
                return await client.post("/v1/validate", content=text, headers=headers)

        answer = asyncio.run(send())
        assert answer.status_code == 400
        assert answer.json()["validation_errors"][0]["type"] == "json"


def test_a_job_is_submitted_followed_and_cancelled(tmp_path: Path, engine: FakeExecutor) -> None:
    with opened(tmp_path, engine, mode="fastapi", n_waiting=1) as service:
        gate = Gate(engine)
        (first,) = call(service, ("POST", "/v1/validate?wait=false", VALIDATE))
        assert (first.status_code, gate.entered.wait(20)) == (202, True)
        second, third, jobs = call(
            service,
            ("POST", "/v1/validate?wait=0.01", VALIDATE),
            ("POST", "/v1/validate", VALIDATE),
            ("GET", "/jobs?limit=5", None),
        )
        assert second.json()["position"] == 1
        assert second.json()["waits_for"] == "validate softmax v1"
        assert (third.status_code, third.headers["retry-after"]) == (429, "1")
        assert {job["id"] for job in jobs.json()["jobs"]} == {
            first.json()["id"],
            second.json()["id"],
        }
        (ended,) = call(service, ("DELETE", f"/job/{second.json()['id']}", None))
        assert ended.json()["state"] == "cancelled"
        gate.open()
        (last,) = call(service, ("GET", f"/job/{first.json()['id']}?wait=20", None))
        assert last.json()["state"] == "completed"


def test_events_are_streamed_and_go_on_where_a_client_left(
    tmp_path: Path, engine: FakeExecutor
) -> None:
    engine.steps = tuple(Progress(nonce="", stage=f"s{i}", done=i, total=3) for i in (1, 2, 3))
    engine.prints = "from the kernel"
    with opened(tmp_path, engine, mode="fastapi") as service:
        job = submit(service)
        whole, rest = call(
            service,
            ("GET", f"/job/{job.id}/events", None),
            ("GET", f"/job/{job.id}/events", None, {"Last-Event-ID": "4"}),
        )
        kinds = [line[7:] for line in whole.text.splitlines() if line.startswith("event: ")]
        assert kinds.count("progress") == 3
        assert (kinds.count("output"), kinds[-1]) == (1, "end")
        numbers = [int(line[4:]) for line in rest.text.splitlines() if line.startswith("id: ")]
        assert numbers[0] == 5
        assert whole.text.endswith(rest.text)
        assert "from the kernel" in whole.text


def test_a_job_of_another_client_is_not_found(tmp_path: Path, engine: FakeExecutor) -> None:
    with opened(tmp_path, engine, mode="fastapi") as service:
        (first,) = call(service, ("POST", "/v1/validate", VALIDATE))
        path = f"/job/{first.json()['id']}"
        others = call(
            service, ("GET", path, None), ("DELETE", path, None), ("GET", f"{path}/events", None),
            ("POST", "/admin/cleanup-jobs", {"older_than_s": 0}), headers=bearer("ben"),
        )  # fmt: skip
        assert [answer.status_code for answer in others] == [404, 404, 404, 200]
        assert others[3].json() == {"removed": 0}
        clean = ("POST", "/admin/cleanup-jobs", {"older_than_s": 0})
        own = call(service, clean, ("GET", path, None))
        assert [own[0].json(), own[1].status_code] == [{"removed": 1}, 404]


def test_health_and_figures(tmp_path: Path, engine: FakeExecutor) -> None:
    engine.steps = (Progress(nonce="", stage="s"),)
    with opened(tmp_path, engine, mode="fastapi") as service:
        answers = call(
            service,
            ("GET", "/health", None),
            ("POST", "/v1/validate", VALIDATE),
            ("GET", "/stats", None),
            ("GET", "/stats?format=prometheus", None),
        )
        health, _, stats, text = answers
        assert health.json()["queue"] == {"waiting": 0, "running": 0, "limit": 100}
        assert [gpu["name"] for gpu in health.json()["gpus"]] == ["a fake"]
        figures = stats.json()
        assert (figures["validation"]["total"], figures["validation"]["failed"]) == (1, 0)
        assert figures["profiling"]["seconds"]["mean"] is None
        assert figures["jobs"]["ended"] == {"completed": 1}
        assert 'triton_magics_jobs_total{state="completed"} 1\n' in text.text
        assert text.headers["content-type"].startswith("text/plain")
        figures["jobs"]["ended"]["completed"] = 12_345_678
        figures["throughput"]["uptime_s"] = 12_345_678.25
        lines = prometheus_text(figures).splitlines()
        assert 'triton_magics_jobs_total{state="completed"} 12345678' in lines
        assert "triton_magics_uptime_seconds 12345678.25" in lines


@pytest.mark.parametrize("wait", ["soon", "-1", "nan", "1e9"])
def test_a_wrong_wait_runs_nothing(tmp_path: Path, engine: FakeExecutor, wait: str) -> None:
    with opened(tmp_path, engine, mode="fastapi") as service:
        (answer,) = call(service, ("POST", f"/v1/validate?wait={wait}", VALIDATE))
        assert answer.status_code == 422
        assert answer.json()["validation_errors"][0]["field"] == "wait"
        assert service.newest(submit(service).caller) != ()


@pytest.mark.parametrize(
    ("phases", "value", "group", "n_failed"),
    [
        (("compiling", "validating"), {"status": "no_gpu"}, "validation", 0),
        (("compiling", "validating"), {"status": "failed"}, "validation", 1),
        (("compiling",), {"status": "compile_error"}, "compilation", 1),
        (
            ("compiling",),
            {"status": "runtime_error", "kernel_exec_result": {"compiled": True}},
            "compilation",
            0,
        ),
    ],
)
def test_a_step_counts_as_failed_where_it_failed(
    tmp_path: Path,
    engine: FakeExecutor,
    phases: tuple[str, ...],
    value: dict[str, Any],
    group: str,
    n_failed: int,
) -> None:
    times = {name: float(i) for i, name in enumerate(("queued", *phases, "completed"))}
    with opened(tmp_path, engine) as service:
        stats = ServerStats(service)
        job = JobView(
            id="1", title="", verb="evaluate", client="ann", state="completed", times=times,
            value=value,
        )  # fmt: skip
        service.on_end[-1](job)
        figures = stats.as_json()[group]
        assert (figures["total"], figures["failed"]) == (1, n_failed)
