"""The executor of another machine: the same values, interrupts, lost connections, versions."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.execution_kit import scripted_job, wait_until
from tests.fake_executor import FakeExecutor
from tests.serve.serve_kit import Gate
from triton_magics.config import Settings
from triton_magics.errors import BadValue, Interrupted, ServerLost, Unavailable
from triton_magics.execution import Limits, Outcome, registry
from triton_magics.execution.frame_stream import FrameStream
from triton_magics.execution.job_requests import JobRequest
from triton_magics.execution.protocol import Progress
from triton_magics.execution.remote_channels import ProcessChannel, ssh_command
from triton_magics.execution.remote_executor import RemoteExecutor
from triton_magics.execution.remote_host import ExecutorHost
from triton_magics.lab import Lab
from triton_magics.model import Case, CaseResult, CaseStatus

SOURCE = "import triton\n\n\ndef triton_softmax(x):\n    return x  # {}\n"
LIMITS = Limits(1.0, 2.0)


class Wire:
    """A channel to a host in a thread of this process."""

    def __init__(self, engine: FakeExecutor, version: str) -> None:
        self.ours, self.theirs = socket.socketpair()
        self.stream = FrameStream(self.ours.fileno(), self.ours.fileno())
        stream = FrameStream(self.theirs.fileno(), self.theirs.fileno())
        self.host = ExecutorHost(engine, stream, version, LIMITS)
        self.thread = threading.Thread(target=self._serve, args=(self.host,), daemon=True)
        self.thread.start()

    def _serve(self, host: ExecutorHost) -> None:
        host.serve()
        self.theirs.close()

    def cut(self) -> None:
        """End the connection as a lost network does."""
        self.ours.shutdown(socket.SHUT_RDWR)

    problem = ""

    def last_error(self) -> str:
        return ""

    def close(self) -> None:
        self.stream.close()
        if self.ours.fileno() >= 0:
            self.cut()
        self.thread.join(60)
        self.ours.close()


class Box:
    """Another machine, with a scripted executor."""

    def __init__(self, version: str | None = None) -> None:
        self.engine = FakeExecutor()
        self.wires: list[Wire] = []
        self._version = version or sys.modules["triton_magics"].__version__
        self.executor = RemoteExecutor("ssh://box", open_channel=self.open)

    def open(self) -> Wire:
        self.wires.append(Wire(self.engine, self._version))
        return self.wires[-1]


@pytest.fixture
def box() -> Iterator[Box]:
    box = Box()
    yield box
    box.executor.close()


@pytest.fixture
def lab(box: Box, tmp_path: Path) -> Iterator[Lab]:
    with Lab(tmp_path / "here", executor=box.executor, settings=Settings()) as lab:
        lab.op("softmax")
        yield lab


def test_values_are_those_of_a_local_executor(lab: Lab, tmp_path: Path) -> None:
    with Lab(tmp_path / "local", executor=FakeExecutor(), settings=Settings()) as local:
        for each in (lab, local):
            each.kernel("softmax", "v1", SOURCE)
        remote = [lab.validate("softmax", "v1", seed=1), lab.bench("softmax", seed=1)]
        same = [local.validate("softmax", "v1", seed=1), local.bench("softmax", seed=1)]
    assert [v.model_dump_json() for v in remote] == [v.model_dump_json() for v in same]
    assert (tmp_path / "here" / "kernels" / "softmax" / "v1_baseline.py").is_file()


def test_a_job_has_its_code_and_limits_and_no_path(box: Box, lab: Lab, tmp_path: Path) -> None:
    lab.kernel("softmax", "v1", SOURCE)
    lab.validate("softmax", "v1")
    job = box.engine.jobs[-1]
    assert "def triton_softmax" in job.version.source
    assert str(tmp_path) not in job.model_dump_json()
    assert box.engine.limits[-1] == Limits.of(Settings())


def test_progress_and_output_arrive_in_order(box: Box, lab: Lab) -> None:
    box.engine.steps = tuple(Progress(nonce="", stage=str(i), done=i, total=3) for i in range(3))
    box.engine.prints = "hello\n"
    steps: list[str] = []
    output: list[str] = []
    lab.on_progress, lab.on_output = lambda step: steps.append(step.stage), output.append
    lab.kernel("softmax", "v1", SOURCE)
    assert steps == ["0", "1", "2"]
    assert output == ["hello\n"]


def test_an_interrupt_ends_the_job_there(box: Box, lab: Lab) -> None:
    lab.kernel("softmax", "v1", SOURCE)
    gate = Gate(box.engine)
    threading.Thread(target=lambda: gate.entered.wait(60) and lab.cancel(), daemon=True).start()
    with pytest.raises(Interrupted):
        lab.validate("softmax", "v1")
    assert box.engine.cancelled == 1
    gate.open()
    assert lab.run("softmax", "v1").passed


def test_an_interrupt_that_comes_before_its_job_counts(box: Box, lab: Lab) -> None:
    lab.kernel("softmax", "v1", SOURCE)
    Gate(box.engine)
    submit = box.engine.submit

    def cancel_first(*args, **options):
        handle = submit(*args, **options)
        lab.cancel()
        wait_until(lambda: host_of(box)._cancelled)  # the frame has come before the handle is noted
        return handle

    box.engine.submit = cancel_first
    with pytest.raises(Interrupted):
        lab.validate("softmax", "v1")
    assert box.engine.cancelled == 1


def host_of(box: Box) -> ExecutorHost:
    return box.wires[-1].host


def test_a_lost_connection_keeps_results_and_connects_again(box: Box, lab: Lab) -> None:
    lab.kernel("softmax", "v1", SOURCE)
    case = Case(shape=(3, 4), dtype="float32", size="small", seed=1)
    plan = CaseResult(case=case, status=CaseStatus.NOT_RUN, reason="not yet")
    result = CaseResult(case=case, status=CaseStatus.PASSED, error_share=float("inf"))
    box.engine.steps = (Progress(nonce="", stage="a case", planned=(plan,), case_result=result),)
    lab.on_progress = lambda step: box.wires[-1].cut()
    box.engine.answer = lambda job: gate.wait(60) and None  # type: ignore[return-value, func-returns-value]
    gate = threading.Event()
    with pytest.raises(ServerLost, match="connection to box was lost.*ends there.*again") as caught:
        lab.validate("softmax", "v1")
    gate.set()
    assert caught.value.value.cases == (result,)
    assert lab.last is caught.value.value
    lab.on_progress = None
    assert lab.engine_state().missing is None
    assert lab.validate("softmax", "v1").passed
    assert len(box.wires) == 2


def cut_during(box: Box, kind: str) -> None:
    """Cut the connection once, in the first job of that kind."""
    run = box.engine.run

    def cut(job: JobRequest, **more: Any) -> Outcome:
        outcome = run(job, **more)
        if job.kind == kind:
            box.engine.run = run
            wire = box.wires[-1]
            wire.cut()
            wire.thread.join(60)  # the answer comes to a wire that has ended
        return outcome

    box.engine.run = cut


def write_again(lab: Lab) -> None:
    lab.kernel("softmax", "v1", SOURCE + "# another\n")


def define_op(lab: Lab) -> None:
    lab.reference("twice", "def twice(x):\n    return 2 * x\n")


@pytest.mark.parametrize(
    ("verb", "kind"),
    [
        (write_again, "compile"),
        (define_op, "describe"),
        (lambda lab: lab.plan("softmax"), "plan"),
        (lambda lab: lab.bench("softmax"), "bench"),
        (lambda lab: lab.run("softmax", "v1"), "run"),
        (lambda lab: lab.inspect("softmax", "v1", ptx=True), "compile"),
    ],
    ids=["write", "own op", "plan", "bench", "run", "inspect"],
)
def test_each_verb_names_the_server_that_it_lost(
    box: Box, lab: Lab, verb: Callable[[Lab], object], kind: str
) -> None:
    lab.kernel("softmax", "v1", SOURCE)
    assert lab.validate("softmax", "v1").passed
    cut_during(box, kind)
    with pytest.raises(ServerLost, match="the connection to box was lost"):
        verb(lab)
    assert lab.run("softmax", "v1").passed


def test_a_close_here_is_an_interrupt(box: Box, lab: Lab) -> None:
    lab.kernel("softmax", "v1", SOURCE)
    gate = Gate(box.engine)
    threading.Thread(target=lambda: gate.entered.wait(60) and box.executor.close()).start()
    with pytest.raises(Interrupted):
        lab.validate("softmax", "v1")
    gate.open()


def test_a_close_during_a_submission_is_an_interrupt(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = box.executor._connect()
    wire = box.wires[-1]
    monkeypatch.setattr(wire, "close", lambda: None)  # the reader has not seen it yet
    monkeypatch.setattr(connection, "send", lambda _: box.executor.close())
    outcome = box.executor.submit(scripted_job("answers")).result(60)
    assert outcome.status == "interrupted"
    monkeypatch.undo()
    wire.close()


def test_a_verdict_stands_where_the_server_is_lost_after_it(box: Box, lab: Lab) -> None:
    box.engine.device_kind = "interpreter"
    lab.kernel("softmax", "v1", SOURCE, compile=False)
    cut_during(box, "compile")
    with pytest.raises(ServerLost):
        lab.validate("softmax", "v1")
    assert lab.validation("softmax", "v1").passed


def test_another_version_is_refused_and_both_are_named(tmp_path: Path) -> None:
    box = Box(version="9.9")
    own = sys.modules["triton_magics"].__version__
    with pytest.raises(Unavailable, match=rf"box has triton_magics 9\.9, this is {own}"):
        box.executor.devices()
    assert "9.9" in str(box.executor.state().missing)
    box.executor.close()


def test_an_error_there_is_the_same_error_here(box: Box, lab: Lab) -> None:
    lab.kernel("softmax", "v1", SOURCE)
    box.engine.missing = "no torch on box"
    with pytest.raises(Unavailable, match="no torch on box"):
        lab.validate("softmax", "v1")


def test_the_state_is_that_of_the_host(box: Box) -> None:
    assert box.executor.devices()[0].kind == "gpu"
    assert box.executor.state().device == "a fake of box"
    box.engine.busy = "bench softmax"
    wait_until(lambda: box.executor.state().busy == "bench softmax")
    assert box.executor.examine() == ()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("ssh://box", ["box", "triton-magics", "executor"]),
        ("ssh://me@box:2222/", ["-p", "2222", "me@box", "triton-magics", "executor"]),
    ],
)
def test_the_users_own_ssh_leads_there(url: str, words: list[str]) -> None:
    command = ssh_command(url)
    assert command[0] == "ssh"
    assert command[-len(words) :] == words


@pytest.mark.parametrize("url", ["ssh://", "ssh://-oProxyCommand=x", "ssh://a b", "ssh://a;b"])
def test_a_host_that_ssh_would_read_as_an_option_is_refused(url: str) -> None:
    with pytest.raises(BadValue, match="write ssh://HOST"):
        registry.create(Settings(engine=url))


def test_a_failed_ssh_says_why() -> None:
    script = "import sys; sys.exit('box: Permission denied (publickey).')"
    executor = RemoteExecutor(
        "ssh://box", open_channel=lambda: ProcessChannel([sys.executable, "-c", script], "box")
    )
    with pytest.raises(Unavailable, match=r"no connection to box: box: Permission denied"):
        executor.devices()
    executor.close()


@pytest.mark.slow
def test_a_real_host_runs_a_real_kernel_and_leaves_nothing(tmp_path: Path) -> None:
    mark = f"TRITON_MAGICS_CACHE={tmp_path}/cache"
    command = ["env", mark, sys.executable, "-m", "triton_magics", "executor"]
    executor = RemoteExecutor("ssh://box", open_channel=lambda: ProcessChannel(command, "box"))
    with Lab(tmp_path, executor=executor, settings=Settings()) as lab:
        lab.op("softmax")
        source = "import torch\n\n\ndef triton_softmax(x):\n    return torch.softmax(x, -1)\n"
        lab.kernel("softmax", "v1", source)
        assert lab.validate("softmax", "v1", plan="quick").status == "failed"  # torch in disguise
    wait_until(lambda: not _with(mark.encode()))


def _with(mark: bytes) -> list[str]:
    """Return the processes with this text in their environment, this one left out."""
    pids = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if mark in environment and folder.name != str(os.getpid()):
            pids.append(folder.name)
    return pids
