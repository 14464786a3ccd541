"""Tests that workspaces and logs written by triton_magics 0.1.0 keep everything when opened."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from lab_harness import FakeExecutor

from triton_magics import workflow
from triton_magics.config import Settings
from triton_magics.errors import TritonMagicsError, WorkspaceError
from triton_magics.lab import Lab
from triton_magics.model import (
    Badge,
    BadgeCode,
    Benchmark,
    Finding,
    SelfCheck,
    Sweep,
    Validation,
    ValidationRequest,
)
from triton_magics.next_step import NextStep
from triton_magics.rendering.replay import request_arguments
from triton_magics.store import Workspace
from triton_magics.store.sqlite import MIGRATIONS
from triton_magics.verbs._phrase import as_magic

FIXTURES = Path(__file__).parent / "fixtures"
WORKSPACE, LOGS = FIXTURES / "workspace_0_1_0", FIXTURES / "logs_0_1_0"
SCHEMA_0_1_0 = 4
Facts = dict[str, Any]


def expected_facts(folder: Path) -> dict[str, Facts]:
    packed = folder / "expected.json.gz"
    text = gzip.decompress(packed.read_bytes()) if packed.exists() else None
    return json.loads(text or (folder / "expected.json").read_bytes())


OWN_OPS = expected_facts(WORKSPACE)
NOTEBOOK_OPS = expected_facts(LOGS)


# ------------------------------------------------------------------------- copies of the records


def copy_workspace(folder: Path) -> Path:
    shutil.copytree(WORKSPACE, folder)
    return folder


def copy_without_store(folder: Path) -> Path:
    shutil.copytree(WORKSPACE, folder)
    shutil.rmtree(folder / ".triton_magics")
    return folder


def copy_logs_alone(folder: Path) -> Path:
    shutil.copytree(WORKSPACE / "logs", folder / "logs")
    return folder


# 0.1.0 left out the badges of a validation whose process was lost: it has those of its request now.
LOST = ("timeout", "crashed", "out_of_memory", "interrupted")
COPIES = {
    "store": copy_workspace,
    "logs and kernels": copy_without_store,
    "logs alone": copy_logs_alone,
}


@pytest.fixture(scope="module", params=COPIES)
def old_workspace(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Workspace]:
    folder = COPIES[request.param](tmp_path_factory.mktemp("old") / "workspace")
    with Workspace(folder, workflow.transition) as workspace:
        yield workspace


@pytest.fixture(scope="module")
def notebook_logs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    folder = tmp_path_factory.mktemp("logs")
    (folder / "logs").mkdir()
    for packed in LOGS.glob("*.jsonl.gz"):
        (folder / "logs" / packed.stem).write_bytes(gzip.decompress(packed.read_bytes()))
    with Workspace(folder, workflow.transition) as workspace:
        yield workspace


# --------------------------------------------------------------- the facts as the present code sees


def facts(workspace: Workspace, op: str) -> Facts:
    """Return what make_workspace.py noted of an op, by the names used there."""
    own = workspace.own_ops().get(op)
    shapes = list(workspace.events(op, verbs=("sized",), limit=1))
    versions = workspace.versions(op)
    return {
        "state": workspace.state(op),
        "n_events": workspace.count(op),
        "own_shapes": shapes[0].args["shapes"] if shapes else [],
        "reference": workspace.reference_path(op).read_text() if own else None,
        "attempts": {v.version: attempts(workspace, op, v.version) for v in versions},
        "events": [event_facts(e) for e in workspace.events(op)],
        "ranked_by": benchmark_facts(workspace.ranking(op)),
        "latest_benchmark": benchmark_facts(workspace.latest_benchmark(op)),
    }


def attempts(workspace: Workspace, op: str, version: str) -> list[Facts]:
    return [
        {
            "number": each.source.attempt,
            "sha256": each.source.sha256,
            "entry": each.source.entry,
            "technique": None,  # of the version
            "validation": validation_facts(each.validation),
            "compilation": each.compilation and each.compilation.status,
        }
        for each in workspace.history(op, version)
    ]


def event_facts(event: Any) -> Facts:
    result = event.result
    entry = {
        "uuid": event.uuid,
        "time": event.time,
        "verb": event.verb,
        "version": event.version,
        "attempt": event.attempt,
        "states": [event.state_before, event.state_after],
        "args": event.args,
        "kind": getattr(result, "kind", None),
        "status": getattr(result, "status", None),
    }
    readers = ((Validation, validation_facts), (Benchmark, benchmark_facts), (Sweep, sweep_facts))
    for kind, read in readers:
        if isinstance(result, kind):
            entry["result"] = read(result)
    return entry


def options_of(request: ValidationRequest) -> list[str]:
    line = as_magic(NextStep("validate", request_arguments(request)))
    return re.split(r" (?=--)", line)[1:]


def validation_facts(result: Validation | None) -> Facts | None:
    return result and {
        "status": result.status,
        "plan": result.plan,
        "seed": result.seed,
        "dtypes": list(result.dtypes),
        "device_kind": result.device_kind,
        "is_spot_check": result.coverage.is_spot_check,
        "cases": dict(sorted(Counter(c.status for c in result.cases).items())),
        "worst_error_share": result.worst_error_share,
        "badges": [] if result.status in LOST else badge_facts(result.badges),
        "message": result.message,
        "error": result.error and result.error.message,
        "options": options_of(result.request),
    }


def benchmark_facts(result: Benchmark | None) -> Facts | None:
    return result and {
        "status": result.status,
        "seed": result.seed,
        "versions": list(result.versions),
        "sha256s": list(result.sha256s),
        "badges": badge_facts(result.badges),
        "mean_us": {f"{t.provider} {t.size}": t.mean_us for t in result.timings},
        "samples": {f"{t.provider} {t.size}": len(t.samples_us) for t in result.timings},
        "clocks": sorted({t.clock for t in result.timings}),
        "comparisons": [
            [c.candidate, c.baseline, c.size, c.ratio, c.low, c.high, c.verdict]
            for c in result.comparisons
        ],
        "final_us": {v: result.final_us(v) for v in result.providers},
    }


def sweep_facts(result: Sweep) -> Facts:
    return {
        "status": result.status,
        "sha256": result.sha256,
        "written": result.written,
        "points": [
            [c.label, c.status, c.timing and c.timing.mean_us] for c in result.configurations
        ],
        "torch_us": result.torch and result.torch.mean_us,
    }


def badge_facts(badges: tuple[Badge | str, ...]) -> list[Facts]:
    """Return badges as JSON; those of 0.1.0 were sentences."""
    return [Badge.model_validate(badge).model_dump(mode="json") for badge in badges]


def with_badges_as_values(entry: Any) -> Any:
    """Return the facts of 0.1.0 with its badges converted, all else as it is."""
    if isinstance(entry, list):
        return [with_badges_as_values(each) for each in entry]
    if not isinstance(entry, dict):
        return entry
    return {
        name: badge_facts(value) if name == "badges" else with_badges_as_values(value)
        for name, value in entry.items()
    }


# ---------------------------------------------------------------------------------- keeping all


def check_op(workspace: Workspace, op: str, expected: Facts) -> None:
    expected, current = with_badges_as_values(expected), facts(workspace, op)
    assert current.keys() <= expected.keys()
    for name in current:
        assert current[name] == expected[name], name


@pytest.mark.parametrize("op", OWN_OPS)
def test_an_old_workspace_keeps_everything(old_workspace: Workspace, op: str) -> None:
    check_op(old_workspace, op, OWN_OPS[op])


@pytest.mark.parametrize("op", NOTEBOOK_OPS)
def test_old_logs_keep_everything(notebook_logs: Workspace, op: str) -> None:
    check_op(notebook_logs, op, NOTEBOOK_OPS[op])


@pytest.mark.parametrize("op", OWN_OPS)
def test_versions_stand_as_they_did(old_workspace: Workspace, op: str) -> None:
    check_versions(old_workspace, op, OWN_OPS[op])


@pytest.mark.parametrize("op", NOTEBOOK_OPS)
def test_versions_of_old_logs_stand_as_they_did(notebook_logs: Workspace, op: str) -> None:
    check_versions(notebook_logs, op, NOTEBOOK_OPS[op])


def check_versions(workspace: Workspace, op: str, expected: Facts) -> None:
    dumped = [json.loads(v.model_dump_json()) for v in workspace.versions(op)]
    by_version = {v["version"]: v for v in with_badges_as_values(dumped)}
    assert list(by_version) == [old["version"] for old in expected["versions"]]
    for old in with_badges_as_values(expected["versions"]):
        now = by_version[old["version"]]
        now["validation_plan"] = plan_of_0_1_0(now["coverage"])
        if now["validation"] in LOST:
            assert all(badge in now["badges"] for badge in old["badges"])
            now["badges"] = old["badges"]
        assert {name: now[name] for name in old} == old


def plan_of_0_1_0(coverage: Facts | None) -> str | None:
    """Return what 0.1.0 called the coverage of a validation."""
    return coverage and ("only some shapes" if coverage["shapes"] else coverage["plan"])


def test_an_old_workspace_needs_no_repair(tmp_path: Path) -> None:
    with Workspace(copy_workspace(tmp_path / "copy"), workflow.transition) as workspace:
        assert [f for f in workspace.check() if f.state == "bad"] == []
        assert workspace.notes == ()


def test_no_event_is_lost_or_written_anew(old_workspace: Workspace) -> None:
    assert set(old_workspace.open_ops()) == set(OWN_OPS)
    for op in OWN_OPS:
        log = old_workspace.path / "logs" / f"{op}_log.jsonl"
        assert log.read_bytes() == (WORKSPACE / "logs" / log.name).read_bytes()


def test_sources_are_the_same_bytes(old_workspace: Workspace) -> None:
    for op, expected in OWN_OPS.items():
        for version, numbered in expected["attempts"].items():
            sources = [s.source for s in old_workspace.attempts(op, version)]
            hashes = [hashlib.sha256(text.encode()).hexdigest() for text in sources]
            assert hashes == [each["sha256"] for each in numbered]


def test_an_own_op_keeps_its_facts(old_workspace: Workspace) -> None:
    own_op = json.loads(old_workspace.own_ops()["double"].model_dump_json())
    expected = OWN_OPS["double"]["own_op"]
    assert {name: own_op[name] for name in expected} == expected


def test_every_old_badge_has_a_code(old_workspace: Workspace, notebook_logs: Workspace) -> None:
    for workspace in (old_workspace, notebook_logs):
        for op in workspace.open_ops():
            results = [e.result for e in workspace.events(op)]
            badges = [b for r in results for b in getattr(r, "badges", ())]
            assert not [b for b in badges if Badge.model_validate(b).code is BadgeCode.TEXT]


# -------------------------------------------------------------------------------- verbs on it


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    folder = copy_workspace(tmp_path / "workspace")
    with Lab(folder, engine=FakeExecutor("interpreter"), settings=Settings()) as opened:
        yield opened


# v3_loose passed with a loosened tolerance, which no longer ranks.
BEST_IN_FULL = {"softmax": "v2_tiling"}


@pytest.mark.parametrize("op", OWN_OPS)
def test_best_is_what_it_was(lab: Lab, op: str) -> None:
    expected = OWN_OPS[op]["best_now"]
    if isinstance(expected, str):
        with pytest.raises(TritonMagicsError) as raised:
            lab.best(op, now=True)
        assert type(raised.value).__name__ == expected
        return
    best = lab.best(op, now=True)
    if op in BEST_IN_FULL:
        assert best.source.version == BEST_IN_FULL[op]
        return
    assert (best.source.version, best.source.sha256) == (expected["version"], expected["sha256"])
    assert (best.final_us, best.speedup, best.by_hand) == (
        expected["final_us"], expected["speedup"], expected["by_hand"],
    )  # fmt: skip


@pytest.mark.parametrize("op", OWN_OPS)
def test_status_allows_what_it_allowed(lab: Lab, op: str) -> None:
    state = lab.status(op)
    # Steps are verbs now: `reset` and `force-write` are parameters of `status`.
    old = [step for step in OWN_OPS[op]["allowed"] if step not in ("reset", "force-write")]
    assert list(state.allowed) == ["kernel" if step == "write" else step for step in old]
    assert state.min_writes == OWN_OPS[op]["min_writes"]


VERBS: dict[str, Callable[[Lab], object]] = {
    "status": lambda lab: lab.status(),
    "report": lambda lab: lab.report(),
    "summary": lambda lab: lab.summary(),
    "log": lambda lab: [lab.export(op) for op in OWN_OPS],
    "diff": lambda lab: lab.diff("softmax", "v1:1", "v2"),
    "restore": lambda lab: lab.restore("softmax", "v1", 1),
    "write": lambda lab: lab.write("relu", "v1", lab.source("relu", "v2").source),
    "validate": lambda lab: lab.validate("softmax", "v2"),
    "bench": lambda lab: lab.bench("relu"),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_runs_on_an_old_workspace(lab: Lab, verb: str) -> None:
    assert VERBS[verb](lab)


# --------------------------------------------------------------- fields that have other names now


def test_older_fields_of_a_self_check_are_read() -> None:
    older = '{"what": "a late host", "passed": true, "said": "not timed"}'
    assert SelfCheck.model_validate_json(older) == SelfCheck(
        name="a late host", passed=True, outcome="not timed"
    )


def test_older_fields_of_a_finding_are_read() -> None:
    older = '{"what": "driver", "state": "bad", "says": "too old", "mend": "install a newer one"}'
    assert Finding.model_validate_json(older) == Finding(
        subject="driver", state="bad", detail="too old", remedy="install a newer one"
    )


# ------------------------------------------------------------------------------------ versions


def test_the_fixture_has_the_schema_of_0_1_0() -> None:
    with closing(
        sqlite3.connect(f"file:{WORKSPACE}/.triton_magics/lab.db?immutable=1", uri=True)
    ) as conn:
        assert conn.execute("PRAGMA user_version").fetchone() == (SCHEMA_0_1_0,)
    assert len(MIGRATIONS) >= SCHEMA_0_1_0


@pytest.fixture
def newer_store(tmp_path: Path) -> Path:
    """Return a workspace whose store has a later schema than the present code."""
    folder = copy_workspace(tmp_path / "newer")
    with Workspace(folder, workflow.transition) as workspace:
        assert workspace.open_ops()
    number = len(MIGRATIONS) + 1
    with closing(sqlite3.connect(folder / ".triton_magics" / "lab.db")) as conn, conn:
        conn.execute("INSERT INTO migrations VALUES (?, 'later', '9.8.7')", (number,))
        conn.execute(f"PRAGMA user_version = {number}")
    return folder


@pytest.mark.parametrize("is_read_only", [False, True])
def test_a_newer_store_names_the_needed_version(
    newer_store: Path, is_read_only: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = newer_store / ".triton_magics"
    before = {path.name: path.read_bytes() for path in store.glob("lab.db*")}
    if is_read_only:
        monkeypatch.setattr("triton_magics.store.connection._writable", lambda path: False)
    with pytest.raises(WorkspaceError, match=r"needs triton_magics 9\.8\.7 or later"):
        Workspace(newer_store, workflow.transition)
    assert {path.name: path.read_bytes() for path in store.glob("lab.db*")} == before


def test_a_newer_store_without_a_version_is_refused_too(newer_store: Path) -> None:
    with closing(sqlite3.connect(newer_store / ".triton_magics" / "lab.db")) as conn, conn:
        conn.execute("ALTER TABLE migrations DROP COLUMN since")
    with pytest.raises(WorkspaceError, match="a newer triton_magics"):
        Workspace(newer_store, workflow.transition)
