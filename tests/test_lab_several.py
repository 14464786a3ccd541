"""Several ops, one after the other: where it pauses, how it goes on, what the report says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fake_executor import FakeExecutor
from triton_magics import rendering
from triton_magics.config import Settings
from triton_magics.errors import UnknownOp
from triton_magics.execution.job_requests import BenchJob, ValidateJob
from triton_magics.lab import Lab
from triton_magics.model import Status

OPS = ("softmax", "layer_norm", "gelu")


@pytest.fixture
def engine() -> FakeExecutor:
    return FakeExecutor()


@pytest.fixture
def lab(tmp_path: Path, engine: FakeExecutor) -> Iterator[Lab]:
    with Lab(tmp_path, engine=engine, settings=Settings(min_writes=2)) as lab:
        yield lab


def write(lab: Lab, op: str, version: str, text: str = "") -> str:
    source = f"import triton\n\n\ndef triton_{op}(x):\n    return x  # {version}{text}\n"
    return lab.write(op, version, source).source.sha256


def jobs(engine: FakeExecutor, kind: type) -> list[str]:
    return [job.op.name for job in engine.jobs if isinstance(job, kind)]


def test_it_pauses_where_a_version_is_missing_and_goes_on_there(
    lab: Lab, engine: FakeExecutor
) -> None:
    for op, version in (("softmax", "v1"), ("softmax", "v2"), ("layer_norm", "v1")):
        write(lab, op, version)
    first = lab.take(OPS)
    assert first.paused_at == "layer_norm"
    assert [(o.op, o.done) for o in first.ops] == [
        ("softmax", True), ("layer_norm", False), ("gelu", False),
    ]  # fmt: skip
    assert jobs(engine, BenchJob) == ["softmax"]
    for op, version in (("layer_norm", "v2"), ("gelu", "v1"), ("gelu", "v2")):
        write(lab, op, version)
    second = lab.take(OPS)
    assert (second.paused_at, second.done) == (None, 3)
    assert sorted(jobs(engine, ValidateJob)) == sorted(OPS * 2)
    assert jobs(engine, BenchJob) == list(OPS)


def test_what_is_done_is_not_done_again(lab: Lab, engine: FakeExecutor) -> None:
    for version in ("v1", "v2"):
        write(lab, "gelu", version)
    lab.take(["gelu"])
    before = len(engine.jobs)
    assert lab.take(["gelu"]).done == 1
    assert len(engine.jobs) == before


def test_after_three_attempts_the_op_continues_without_it(lab: Lab, engine: FakeExecutor) -> None:
    write(lab, "gelu", "v1")
    paused = []
    for n in range(3):
        engine.verdicts[write(lab, "gelu", "v2", f"try {n}")] = Status.FAILED
        paused.append(lab.take(["gelu"]).paused_at)
    assert paused == ["gelu", "gelu", None]
    done = lab.report()
    assert done.done == 1
    (setback,) = done.setbacks
    assert (setback.version, setback.attempts_failed, setback.exhausted) == ("v2_tiling", 3, True)
    assert done.ops[0].best == "v1_baseline"


def test_a_quick_verdict_is_not_enough(lab: Lab, engine: FakeExecutor) -> None:
    for version in ("v1", "v2"):
        write(lab, "gelu", version)
        lab.validate("gelu", version, plan="quick")
    assert lab.take(["gelu"]).done == 1
    plans = [job.plan for job in engine.jobs if isinstance(job, ValidateJob)]
    assert plans == ["quick", "quick", "full", "full"]


def test_an_edit_of_a_file_is_judged_anew(lab: Lab, engine: FakeExecutor) -> None:
    for version in ("v1", "v2"):
        write(lab, "gelu", version)
    lab.take(["gelu"])
    path = lab.path / "kernels" / "gelu" / "v1_baseline.py"
    path.write_text(path.read_text() + "# edited\n")
    lab.take(["gelu"])
    assert jobs(engine, ValidateJob) == ["gelu"] * 3
    assert jobs(engine, BenchJob) == ["gelu"] * 2


def test_an_unknown_name_is_refused_before_any_work(lab: Lab, engine: FakeExecutor) -> None:
    write(lab, "softmax", "v1")
    before = len(engine.jobs)
    with pytest.raises(UnknownOp, match="Did you mean 'gelu'"):
        lab.take(["softmax", "gelo"])
    assert len(engine.jobs) == before


def test_an_interrupt_loses_nothing(lab: Lab, engine: FakeExecutor) -> None:
    for version in ("v1", "v2"):
        write(lab, "gelu", version)

    def raise_interrupt(_job: object) -> object:
        raise KeyboardInterrupt

    lab.validate("gelu", "v1")
    engine.answer = raise_interrupt  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        lab.take(["gelu"])
    assert lab.take(["gelu"]).done == 1
    assert jobs(engine, ValidateJob) == ["gelu"] * 3  # v1, v2 interrupted, v2


def test_the_report_reads_well(lab: Lab, engine: FakeExecutor) -> None:
    for version in ("v1", "v2"):
        write(lab, "gelu", version)
    engine.times_us = {"v1": (2, 6, 54), "v2": (1, 3, 27)}
    write(lab, "softmax", "v1")
    lab.take(["gelu"])
    engine.verdicts[write(lab, "softmax", "v1", "x")] = Status.FAILED
    text = rendering.bundle(lab.take(["gelu", "softmax"]))["text/plain"]
    assert text.startswith("! PAUSED  at softmax v1 · ")
    assert "1 of 2 ops done · 2.00x as fast as torch" in text
    assert "paused at v1: attempt 1 of 3 failed" in text
    assert "9 of 9 cases" in text
    assert "kernel softmax v1, then ops gelu softmax continues" in " ".join(text.split())


def test_the_plot_shows_each_best_version(lab: Lab, engine: FakeExecutor) -> None:
    for version in ("v1", "v2"):
        write(lab, "gelu", version)
    engine.times_us = {"v1": (2, 6, 54), "v2": (1, 3, 27)}
    assert rendering.overview_plot(lab.report()) is None
    result = lab.take(["gelu"])
    assert rendering.report_finding(result) == "gelu 2.00x as fast as torch"
    figure = rendering.overview_plot(result)
    assert figure is not None
    assert [bar.get_width() for bar in figure.axes[0].patches] == pytest.approx([2.0])


def test_summary_without_ops_says_so(lab: Lab) -> None:
    assert "no op has been opened here" in rendering.bundle(lab.report())["text/plain"]


def test_ops_go_to_the_chosen_version_and_the_log(lab: Lab, engine: FakeExecutor) -> None:
    for version in ("v1", "v2"):
        write(lab, "gelu", version)
    engine.times_us = {"v1": (2, 6, 54), "v2": (1, 3, 27)}
    lab.take(["gelu"])
    assert [v.version for v in lab.op_state("gelu").versions if v.best] == ["v2_tiling"]
    assert "CHOSEN" in (lab.path / "logs" / "gelu_log.md").read_text()
    assert (lab.path / "kernels" / "gelu" / "chosen.py").exists()


def test_ops_keep_a_choice_by_hand(lab: Lab, engine: FakeExecutor) -> None:
    for version in ("v1", "v2"):
        write(lab, "gelu", version)
    engine.times_us = {"v1": (2, 6, 54), "v2": (1, 3, 27)}
    lab.take(["gelu"])
    lab.best("gelu", "v1", why="simpler")
    lab.take(["gelu"])
    assert "chosen by hand: simpler" in (lab.path / "logs" / "gelu_log.md").read_text()
