"""The OpenAPI document: each request has a schema and an example, and the examples run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fake_executor import FakeExecutor
from tests.serve.serve_kit import SOURCE, call, opened, submit
from triton_magics.model import Status


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeExecutor:
    monkeypatch.setenv("TRITON_MAGICS_CACHE", str(tmp_path / "cache"))
    return FakeExecutor()


def bodies(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        path: methods["post"]["requestBody"]["content"]["application/json"]
        for path, methods in document["paths"].items()
        if "requestBody" in methods.get("post", {})
    }


def references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [ref for each in value.values() for ref in references(each)]
    return [ref for each in value for ref in references(each)] if isinstance(value, list) else []


def test_every_reference_of_the_document_resolves(tmp_path: Path, engine: FakeExecutor) -> None:
    with opened(tmp_path / "w", engine, mode="fastapi") as service:
        (answer,) = call(service, ("GET", "/openapi.json", None))
        document = answer.json()
        names = {ref.removeprefix("#/components/schemas/") for ref in references(document)}
        assert names <= set(document["components"]["schemas"])
        assert "ValidateRequest" in names
        assert "/v1/import" not in document["paths"]  # it reads files of the server
        missing = [path for path in document["paths"] if path.startswith("/v1/")]
        assert set(missing) <= set(bodies(document))
        others = {"/", "/evaluate", "/compare", "/validate", "/admin/cleanup-jobs"}
        assert others <= set(bodies(document))
        assert len(json.dumps(document)) < 250_000


def test_the_document_has_the_query_of_every_route(tmp_path: Path, engine: FakeExecutor) -> None:
    with opened(tmp_path / "w", engine, mode="fastapi") as service:
        job = submit(service)
        assert job.wait(20)
        (answer,) = call(service, ("GET", "/openapi.json", None))
        operations = {
            (method.upper(), path): each
            for path, methods in answer.json()["paths"].items()
            for method, each in methods.items()
        }
        queries = {
            (method, path): [p["name"] for p in each.get("parameters", ()) if p["in"] == "query"]
            for (method, path), each in operations.items()
        }
        assert queries["GET", "/jobs"] == ["limit"]
        assert queries["GET", "/stats"] == ["format"]
        assert queries["GET", "/job/{job_id}"] == ["wait"]
        assert queries["GET", "/job/{job_id}/events"] == ["after"]
        assert queries["DELETE", "/job/{job_id}"] == queries["GET", "/health"] == []
        assert all(names == ["wait"] for (_, path), names in queries.items() if "/v1/" in path)
        for (method, path), names in queries.items():
            assert {"200", "401", "422"} <= set(operations[method, path]["responses"])
            if method == "GET":
                place = path.format(job_id=job.id)
                options = [f"{name}={operations[method, path]['parameters'][-1]['example']}"
                         for name in names]  # fmt: skip
                requests = [
                    ("GET", f"{place}?{'&'.join(each)}", None) for each in (options, ["x=1"])
                ]
                assert [a.status_code for a in call(service, *requests)] == [200, 422], path


def test_the_examples_run(tmp_path: Path, engine: FakeExecutor) -> None:
    engine.sweep_us = lambda settings: 10.0
    with opened(tmp_path / "w", engine, mode="fastapi") as service:
        for version in ("v1", "v2", "v2"):
            knobs = f"BLOCK_SIZE = 64  # {len(engine.jobs)}\nnum_warps = 4\n"
            text = SOURCE.format(version) + knobs
            service.lab.kernel("softmax", version, text)
            service.lab.validate("softmax", version)
        matmul = SOURCE.format("v1").replace("softmax", "matmul")
        service.lab.kernel("matmul", "v1", f"{matmul}BLOCK_M = 64\nnum_warps = 4\n")
        service.lab.bench("softmax")
        (answer,) = call(service, ("GET", "/openapi.json", None))
        examples = {path: body["example"] for path, body in bodies(answer.json()).items()}
        order = sorted(examples, key=lambda path: path in ("/v1/kernel", "/v1/restore"))
        answers = call(service, *(("POST", path, examples[path]) for path in order))
        for path, answer in zip(order, answers, strict=True):
            if path == "/v1/fix":  # no verdict here has a correction
                assert answer.json()["message"].endswith("there is nothing to correct.")
                continue
            assert answer.status_code in (200, 409), (path, answer.text)
            assert answer.status_code == 200 or answer.json()["error"] == "IllegalStep", path
        assert sum(answer.status_code == 200 for answer in answers) >= len(answers) - 3


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (
            "/v1/template",
            {"pattern": "reduction", "op": "softmax", "version": "v1", "to": "/tmp/x"},
        ),
        ("/v1/plot", {"op": "softmax", "to": "../x.png"}),
    ],
)
def test_a_client_names_no_file_of_the_server(
    tmp_path: Path, engine: FakeExecutor, path: str, body: dict[str, Any]
) -> None:
    with opened(tmp_path / "w", engine, mode="fastapi") as service:
        answer, missing = call(service, ("POST", path, body), ("POST", "/v1/import", {"path": "/"}))
        assert answer.json()["validation_errors"][0]["field"] == "to"
        assert (answer.status_code, missing.status_code) == (422, 404)
        assert Status.PASSED.value not in answer.text
