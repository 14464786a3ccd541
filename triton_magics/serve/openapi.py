"""The OpenAPI document: the schema of every request, with an example that runs."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from triton_magics.serve.guide_requests import CompareBody, EvaluateBody, LegacyBody, ValidateBody
from triton_magics.serve.guide_run import GuideResult
from triton_magics.serve.job_model import JobView
from triton_magics.serve.rest import Cleanup
from triton_magics.verbs._base import Verb

_ENTRY = "\n\n\ndef triton_softmax(x):\n    ..."  # in place of the rest of a cell
_PREFIX = "#/components/schemas/"
_ADD = """import triton
import triton.language as tl


@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)
"""
_TENSOR = {"shape": [1000], "dtype": "float32"}
_IO = {
    "args": [
        {
            "name": name,
            "type": "tensor",
            "tensor_spec": {**_TENSOR, "init": {"kind": "randn", "seed": seed}},
            "role": "input",
        }
        for seed, name in enumerate(("x_ptr", "y_ptr"))
    ]
    + [
        {"name": "out_ptr", "type": "tensor", "tensor_spec": _TENSOR, "role": "output"},
        {"name": "n", "type": "int", "value": 1000},
        {"name": "BLOCK", "type": "int", "value": 256, "is_meta": True},
    ],
    "launch": {"grid": {"x": 4, "y": 1, "z": 1}, "num_warps": 4},
}
_KERNEL = {"source_code": _ADD, "kernel_type": "triton", "io": _IO}
_REFERENCE = {"source_code": "def add(x, y):\n    return x + y\n", "kernel_type": "torch"}
GUIDE: dict[str, tuple[type[BaseModel], dict[str, Any]]] = {
    "evaluate": (EvaluateBody, {"kernel": _KERNEL, "reference": _REFERENCE, "num_trials": 100}),
    "compare": (CompareBody, {"ref_kernel": _REFERENCE, "custom_kernel": _KERNEL}),
    "validate": (ValidateBody, {"kernel": _KERNEL, "reference": _REFERENCE}),
}
_MODEL = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x + x


def get_inputs():
    return [torch.randn(64)]
"""
_LEGACY = {
    "ref_code": _MODEL,
    "custom_code": _MODEL.replace("x + x", "2 * x"),
    "num_trials": 100,
}
_REFUSALS = {
    "401": "no token",
    "404": "no such op, version or job",
    "409": "the workflow does not allow it now, or the job was cancelled",
    "413": "the body is too large",
    "415": "the body is not JSON",
    "422": "fields with faults, all of them",
    "429": "too many jobs wait; see Retry-After",
    "503": "kernels can't run here now",
}


Bodies = dict[str, tuple[type[BaseModel], dict[str, Any]]]


def example_of(verb: Verb) -> dict[str, Any]:
    """Return the verb's own example, as the body of a request."""
    head, _, cell = verb.example.replace("\n...", _ENTRY).partition("\n")
    parser = argparse.ArgumentParser()
    for each in verb.arguments:
        each.add_to(parser)
    words = parser.parse_args(shlex.split(head)[1:])
    request = verb.read(words, cell=cell or "# the source")
    return request.model_dump(mode="json", exclude_unset=True, exclude={"cell_offset"})


def add_document(app: FastAPI, verbs: Iterable[Verb]) -> None:
    """Make `/openapi.json` of an application complete.

    Args:
        app: its routes are there.
        verbs: whose routes are /v1/<name>.
    """
    bodies: Bodies = {f"/v1/{verb.name}": (verb.request, example_of(verb)) for verb in verbs}
    bodies |= {f"/{name}": pair for name, pair in GUIDE.items()}
    bodies |= {"/": (LegacyBody, _LEGACY), "/admin/cleanup-jobs": (Cleanup, {"older_than_s": 300})}
    models: list[Any] = [(model, "validation") for model, _ in bodies.values()]
    models += [(JobView, "serialization"), (GuideResult, "serialization")]
    basic = app.openapi
    cached: dict[str, Any] = {}

    def document() -> dict[str, Any]:
        if not cached:
            _, schemas = models_json_schema(models, ref_template=_PREFIX + "{model}")
            cached.update(_complete(basic(), bodies, schemas["$defs"]))
        return cached

    app.openapi = document  # type: ignore[method-assign]


def _complete(document: dict[str, Any], bodies: Bodies, schemas: dict[str, Any]) -> dict[str, Any]:
    components = document.setdefault("components", {})
    components["schemas"] = components.get("schemas", {}) | schemas
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{"token": []}]
    for path, (model, example) in bodies.items():
        if path not in document["paths"]:
            continue
        operation = document["paths"][path]["post"]
        schema = {"$ref": _PREFIX + model.__name__}
        content = {"application/json": {"schema": schema, "example": example}}
        operation["requestBody"] = {"required": True, "content": content}
        operation["parameters"] = [_WAIT]
        answer = GuideResult if path.removeprefix("/") in (*GUIDE, "") else JobView
        operation["responses"] = _responses(answer)
    for (path, method), query in _PLAIN.items():
        if operation := document["paths"].get(path, {}).get(method):
            of_path = [p for p in operation.get("parameters", ()) if p["in"] == "path"]
            operation["parameters"] = [*of_path, *query]
            codes = ("401", "404", "422") if of_path else ("401", "422")
            refusals = {code: {"description": _REFUSALS[code]} for code in codes}
            operation["responses"] = {"200": _OK, **refusals}
    return document


def _query(name: str, text: str, example: str, **schema: object) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": text, "example": example, "schema": schema}


_WAIT = _query(
    "wait",
    "`false`: answer 202 with the job at once; a number: wait so many seconds",
    "20",
    type="string",
    default="true",
)
_WHOLE = {"type": "integer", "minimum": 0}
_OK = {"description": "see the summary"}
_PLAIN: dict[tuple[str, str], list[dict[str, Any]]] = {
    ("/health", "get"): [],
    ("/stats", "get"): [
        _query("format", "`json` or `prometheus`", "json", type="string", default="json")
    ],
    ("/jobs", "get"): [_query("limit", "most jobs", "50", **_WHOLE, maximum=500, default=50)],
    ("/job/{job_id}", "get"): [
        _query("wait", "seconds to wait for its end", "20", type="string", default="false")
    ],
    ("/job/{job_id}", "delete"): [],
    ("/job/{job_id}/events", "get"): [
        _query("after", "number of the last event that is known", "0", **_WHOLE, default=0)
    ],
    ("/admin/cleanup-jobs", "post"): [],
}


def _responses(answer: type[BaseModel]) -> dict[str, Any]:
    def schema(model: type[BaseModel]) -> dict[str, Any]:
        return {"application/json": {"schema": {"$ref": _PREFIX + model.__name__}}}

    return {
        "200": {
            "description": "the result, also of a kernel that fails",
            "content": schema(answer),
        },
        "202": {"description": "the job, which goes on", "content": schema(JobView)},
        **{code: {"description": text} for code, text in _REFUSALS.items()},
    }


__all__ = ["GUIDE", "add_document", "example_of"]
