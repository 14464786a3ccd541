"""Tests of the state of each version, and that it follows from the events alone."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from workspace_kit import (
    bench,
    benchmark,
    open_workspace,
    own_facts,
    tables,
    validate,
    validation,
    visible_state,
    write,
)

from triton_magics.model import (
    Badge,
    BadgeCode,
    Compilation,
    Coverage,
    KernelError,
    NotTimed,
    Status,
)


@pytest.fixture
def ws(tmp_path):
    with open_workspace(tmp_path) as workspace:
        yield workspace


def only(ws):
    (version,) = ws.versions("softmax")
    return version


# ---------------------------------------------------------------------------------- verdicts


def test_a_version_shows_the_verdict_on_its_newest_attempt(ws):
    result = validate(ws, write(ws, "v1", 1), dtypes=("float32", "float16"))
    version = only(ws)
    assert (version.validation, version.coverage, version.validation_device) == (
        Status.PASSED,
        Coverage(dtypes=("float32", "float16")),
        "gpu",
    )
    assert version.cases == "2/2"
    assert ws.latest_validation("softmax", "v1") == result
    write(ws, "v1", 2)
    assert (only(ws).validation, ws.latest_validation("softmax", "v1")) == (None, None)


STANDING = [
    # before, after, which of them stands
    ((Status.PASSED, "full", "gpu"), (Status.FAILED, "quick", "gpu"), 1),
    ((Status.FAILED, "full", "gpu"), (Status.PASSED, "quick", "gpu"), 1),
    ((Status.PASSED, "full", "gpu"), (Status.PASSED, "quick", "gpu"), 0),
    ((Status.PASSED, "quick", "gpu"), (Status.PASSED, "full", "gpu"), 1),
    ((Status.PASSED, "full", "gpu"), (Status.PASSED, "full", "interpreter"), 0),
    ((Status.PASSED, "full", "interpreter"), (Status.PASSED, "quick", "gpu"), 1),
    ((Status.PASSED, "full", "gpu"), (Status.PASSED, "full", "gpu"), 1),
    ((Status.PASSED, "full", "gpu"), (Status.INTERRUPTED, "full", "gpu"), 0),
    ((Status.FAILED, "full", "gpu"), (Status.NO_GPU, "full", "gpu"), 0),
    ((Status.NO_GPU, "full", None), (Status.INTERRUPTED, "full", "gpu"), 1),
    ((Status.INTERRUPTED, "full", "gpu"), (Status.TIMEOUT, "full", "gpu"), 1),
]


@pytest.mark.parametrize(("before", "after", "standing"), STANDING)
def test_precedence_of_two_verdicts(ws, before, after, standing):
    source = write(ws, "v1", 1)
    both = [validate(ws, source, *before), validate(ws, source, *after)]
    assert ws.latest_validation("softmax", "v1") == both[standing]
    assert only(ws).validation is both[standing].status


def test_three_failed_attempts_exhaust_a_version(ws):
    for mark in range(3):
        source = write(ws, "v1", mark)
        validate(ws, source, Status.FAILED)
        validate(ws, source, Status.TIMEOUT)
        assert only(ws).attempts_failed == mark + 1
    assert only(ws).exhausted
    validate(ws, write(ws, "v1", 3))
    assert (only(ws).attempts_failed, only(ws).exhausted) == (3, False)


def test_an_interrupted_attempt_is_not_a_failed_one(ws):
    for mark in range(3):
        validate(ws, write(ws, "v1", mark), Status.INTERRUPTED)
    assert (only(ws).attempts_failed, only(ws).exhausted) == (0, False)


def test_reset_keeps_history_and_restarts_the_counts(ws):
    ws.record("softmax", "shown")
    source = write(ws, "v1", 1)
    validate(ws, source, Status.FAILED)
    ws.record("softmax", "reset")
    version = only(ws)
    assert ws.state("softmax") == "start"
    assert (version.counted, version.current, version.attempts_failed) == (False, False, 0)
    assert version.validation is Status.FAILED
    assert ws.source("softmax", "v1") == source


def test_same_cell_after_a_reset_counts_without_a_new_attempt(ws):
    write(ws, "v1", 1)
    ws.record("softmax", "reset")
    assert write(ws, "v1", 1).attempt == 1
    assert (only(ws).counted, only(ws).current, ws.state("softmax")) == (True, True, "evaluation")
    assert ws.count("softmax") == 3


def test_the_version_written_last_is_current(ws):
    write(ws, "v1", 1)
    write(ws, "v2", 1)
    write(ws, "v1", 2)
    assert [v.current for v in ws.versions("softmax")] == [True, False]


def compilation(source, status, target="sm_90"):
    failed = status is Status.COMPILE_ERROR
    return Compilation(
        op="softmax",
        version=source.version,
        attempt=1,
        sha256=source.sha256,
        status=status,
        error=KernelError(kind="CompileError", message="no such name") if failed else None,
        target=target,
    )


def test_compile_error_returns_the_op_to_write(ws):
    result = compilation(write(ws, "v1", 1), Status.COMPILE_ERROR)
    assert ws.record("softmax", "compiled", result=result).state_after == "write"
    assert (only(ws).compilation, only(ws).validation) == (Status.COMPILE_ERROR, None)


def test_a_compilation_for_another_target_changes_no_verdict(ws):
    source = write(ws, "v1", 1)
    ws.record("softmax", "compiled", result=compilation(source, Status.PASSED))
    other = compilation(source, Status.COMPILE_ERROR, target="sm_80")
    assert ws.record("softmax", "compiled", result=other).state_after == "evaluation"
    assert only(ws).compilation is Status.PASSED
    assert ws.compilation("softmax", source.sha256).target == "sm_90"
    ws.record("softmax", "compiled", result=compilation(source, Status.COMPILE_ERROR))
    assert only(ws).compilation is Status.COMPILE_ERROR


# -------------------------------------------------------------------------- may it be timed?


def test_a_passed_validation_is_found_by_source_dtype_and_device(ws):
    source = write(ws, "v1", 1)
    result = validate(ws, source, plan="quick", dtypes=("float32", "float16"))

    def find(sha256=source.sha256, dtype="float32", kind="gpu"):
        return ws.passed_validation("softmax", sha256, dtype, kind)

    assert find() == find(dtype="float16") == result
    assert find(dtype="bfloat16") is None
    assert find(kind="interpreter") is None
    assert find(sha256="0" * 64) is None


def test_a_later_failure_revokes_only_the_dtypes_that_failed(ws):
    source = write(ws, "v1", 1)
    validate(ws, source, dtypes=("float32", "float16"))
    validate(ws, source, Status.FAILED, dtypes=("float16",))
    assert ws.passed_validation("softmax", source.sha256, "float16", "gpu") is None
    assert ws.passed_validation("softmax", source.sha256, "float32", "gpu") is not None


def test_a_crash_without_cases_revokes_every_dtype(ws):
    source = write(ws, "v1", 1)
    validate(ws, source, kind="interpreter")
    crash = validation(source, Status.CRASHED, kind=None).evolve(cases=())
    ws.record("softmax", "validated", result=crash)
    assert ws.passed_validation("softmax", source.sha256, "float32", "interpreter") is None


def test_an_interrupted_validation_revokes_nothing(ws):
    source = write(ws, "v1", 1)
    validate(ws, source)
    validate(ws, source, Status.INTERRUPTED)
    assert ws.passed_validation("softmax", source.sha256, "float32", "gpu") is not None


# ------------------------------------------------------------------------------------- times


def right(ws, version, mark):
    source = write(ws, version, mark)
    validate(ws, source)
    return source


def test_times_hold_for_the_source_that_was_timed(ws):
    source = right(ws, "v1", 1)
    result = bench(ws, {source: 4.0})
    version = only(ws)
    assert (version.final_us, version.speedup, version.clock) == (4.0, 2.5, "gpu")
    assert version.means_us == {"small": 4.0, "medium": 4.0, "large": 4.0}
    assert ws.latest_benchmark("softmax") == result
    right(ws, "v1", 2)
    assert (only(ws).final_us, only(ws).means_us) == (None, {})
    ws.restore("softmax", "v1", 1)
    assert only(ws).final_us == 4.0


def test_the_newest_whole_benchmark_on_a_gpu_gives_the_times(ws):
    source = right(ws, "v1", 1)
    bench(ws, {source: 4.0})
    bench(ws, {source: 3.0})
    bench(ws, {source: 1.0}, sizes=("small",))
    bench(ws, {source: 900.0}, clock="interpreter")
    bench(ws, {source: 0.5}, status=Status.INTERRUPTED)
    assert (only(ws).final_us, only(ws).clock) == (3.0, "gpu")


def test_the_best_has_the_smallest_final_within_one_benchmark(ws):
    one, two, three = (right(ws, f"v{n}", n) for n in (1, 2, 3))
    together = bench(ws, {one: 5.0, two: 3.0, three: 4.0})
    assert best(ws) == ["v2_tiling"]
    assert ws.ranking("softmax") == together
    bench(ws, {one: 2.0})  # alone: it was not compared with the others
    assert best(ws) == ["v2_tiling"]
    again = bench(ws, {one: 2.0, two: 3.0, three: 1.0})
    assert best(ws) == ["v3_coalesced"]
    assert ws.ranking("softmax") == again


@pytest.mark.parametrize("code", ["cached", "wrong_output", "impossible"])
def test_a_void_benchmark_removes_the_times_of_its_culprit(ws, code):
    one, two = (right(ws, f"v{n}", n) for n in (1, 2))
    bench(ws, {one: 5.0, two: 3.0})
    assert best(ws) == ["v2_tiling"]
    gap = NotTimed(size="small", provider="v2_tiling", reason="it caches answers", code=code)
    void = benchmark({two: 3.0}, status=Status.FAILED).evolve(not_timed=(gap,))
    ws.record("softmax", "benchmarked", result=void)
    assert [v.final_us for v in ws.versions("softmax")] == [5.0, None]
    assert best(ws) == ["v1_baseline"]


def best(ws):
    return [v.version for v in ws.versions("softmax") if v.best]


def test_changed_or_failed_version_is_not_the_best(ws):
    one, two, three = (right(ws, f"v{n}", n) for n in (1, 2, 3))
    bench(ws, {one: 5.0, two: 3.0, three: 4.0})
    right(ws, "v2", "other")
    assert best(ws) == ["v3_coalesced"]
    validate(ws, three, Status.FAILED)
    assert best(ws) == ["v1_baseline"]


def test_interpreter_times_rank_nothing(ws):
    bench(ws, {right(ws, "v1", 1): 5.0}, clock="interpreter")
    assert best(ws) == []
    assert ws.ranking("softmax") is None


def test_badges_of_verdict_and_times_are_shown_once(ws):
    source = write(ws, "v1", 1)
    loose = validation(source, plan="quick", rtol=0.1)
    ws.record("softmax", "validated", result=loose)
    bench(ws, {source: 4.0})
    assert only(ws).badges == (
        Badge.of(BadgeCode.OWN_TOLERANCE, rtol=0.1), Badge.of(BadgeCode.QUICK_PLAN),
    )  # fmt: skip


def test_three_validated_and_timed_versions_reach_the_end(ws):
    ws.record("softmax", "shown")
    states = []
    for number in (1, 2, 3):
        source = right(ws, f"v{number}", number)
        states.append(ws.state("softmax"))
        bench(ws, {source: 4.0})
        states.append(ws.state("softmax"))
    assert states == ["evaluation", "write", "evaluation", "write", "evaluation", "end"]


# ------------------------------------------------------------------------------ event by event

VERSIONS = st.sampled_from(["v1", "v2", "v3_mine"])
MARKS = st.integers(0, 2)
STATUSES = st.sampled_from([Status.PASSED, Status.FAILED, Status.TIMEOUT, Status.INTERRUPTED])


@dataclasses.dataclass
class Worker:
    """Does one step of a random session."""

    ws: object

    def write(self, version, mark):
        write(self.ws, version, mark)

    def validate(self, version, status, plan, kind):
        if source := self._newest(version):
            validate(self.ws, source, status, plan, kind)

    def bench(self, finals, clock):
        timed = {self._newest(v): us for v, us in finals.items() if self._newest(v)}
        if timed:
            bench(self.ws, timed, clock=clock)

    def restore(self, version, attempt):
        if (source := self._newest(version)) and attempt < source.attempt:
            self.ws.restore("softmax", version, attempt)

    def edit(self, version, mark):
        if source := self._newest(version):
            path = self.ws.path / source.path
            path.write_text(path.read_text() + f"# {mark}\n")
            self.ws.sync("softmax", version)

    def define(self, mark):
        self.ws.define("softmax", f"A = {mark}\n", own_facts("softmax"))

    def mark(self, verb):
        self.ws.record("softmax", verb)

    def _newest(self, version):
        names = [v.version for v in self.ws.versions("softmax")]
        exists = any(version in (name, name.split("_")[0]) for name in names)
        return self.ws.source("softmax", version) if exists else None


STEPS = st.one_of(
    st.tuples(st.just("write"), VERSIONS, MARKS),
    st.tuples(
        st.just("validate"),
        VERSIONS,
        STATUSES,
        st.sampled_from(["full", "quick"]),
        st.sampled_from(["gpu", "interpreter"]),
    ),
    st.tuples(
        st.just("bench"),
        st.dictionaries(VERSIONS, st.floats(1, 9), min_size=1),
        st.sampled_from(["gpu", "interpreter"]),
    ),
    st.tuples(st.just("restore"), VERSIONS, st.integers(1, 3)),
    st.tuples(st.just("edit"), VERSIONS, MARKS),
    st.tuples(st.just("define"), MARKS),
    st.tuples(st.just("mark"), st.sampled_from(["shown", "reset", "forced", "chosen"])),
)


@pytest.mark.in_turn
@settings(max_examples=40, deadline=None)
@given(steps=st.lists(STEPS, max_size=25))
def test_events_alone_rebuild_the_visible_state(tmp_path_factory, steps):
    path = tmp_path_factory.mktemp("session")
    with open_workspace(path) as ws:
        for name, *arguments in steps:
            getattr(Worker(ws), name)(*arguments)
        state, rows = visible_state(ws), tables(path)
        ws.rebuild()
        assert tables(path) == rows
        assert visible_state(ws) == state
        log = {p: p.read_bytes() for p in (path / "logs").glob("*")}
    clone = tmp_path_factory.mktemp("clone")
    (clone / "logs").mkdir()
    for file, data in log.items():
        (clone / "logs" / file.name).write_bytes(data)
    with open_workspace(clone) as ws:
        assert visible_state(ws) == state
        assert [ws.sync("softmax", v.version) for v in ws.versions("softmax")] == [None] * len(
            ws.versions("softmax")
        )
    assert {p: (clone / p.relative_to(path)).read_bytes() for p in log} == log


def test_a_store_without_events_rebuilds_to_nothing(ws, tmp_path):
    ws.rebuild()
    assert all(rows == [] for rows in tables(tmp_path).values())


def test_an_interrupted_benchmark_hides_no_complete_one(ws):
    source = write(ws, "v1", 1)

    def newest_after(us, status):
        result = benchmark({source: us}, status=status)
        ws.record("softmax", "benchmarked", result=result)
        return ws.latest_timing("softmax", source.version).timing(source.version, "small").median_us

    assert newest_after(1.0, Status.INTERRUPTED) == 1.0
    assert newest_after(2.0, Status.PASSED) == 2.0
    assert newest_after(3.0, Status.INTERRUPTED) == 2.0
    assert newest_after(4.0, Status.PASSED) == 4.0
    source = write(ws, "v1", 2)
    assert newest_after(5.0, Status.INTERRUPTED) == 5.0
