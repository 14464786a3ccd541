"""The worker, `python -m triton_magics.harness --mode gpu --fd 3`: warms up, then executes jobs.

With `--fork-server --fd 3` the process forks such workers instead (see `fork_server`).

The worker sends frames over its data socket; output of code under test goes to stdout and stderr.
Only an answer with the job's nonce counts. Versions are called in another process, the subject
process (see `subject_process`), which does not have the data socket.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import importlib
import os
import secrets
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from triton_magics.execution import seccomp
from triton_magics.execution.cpu_cores import move_to_named_cores
from triton_magics.execution.job_requests import BenchJob, Mode
from triton_magics.execution.protocol import (
    CODE_CONNECTION_CLOSED,
    HEADER,
    FrameReader,
    Order,
    Progress,
    Ready,
    Reply,
    WarmUpState,
    encode,
)
from triton_magics.execution.sandbox import enter_from_environment
from triton_magics.execution.scratch import SCRATCH
from triton_magics.harness.execute import (
    Execution,
    Finished,
    execute,
    fault_of,
    finish,
    handler_of,
)
from triton_magics.harness.process import (
    compile_processes,
    descriptor_reserve,
    fork_server,
    gpu_lock,
    measuring_process,
    neighbours,
    parent_watch,
    subject_process,
)
from triton_magics.harness.process.output_flush import flush
from triton_magics.harness.process.subject_link import SubjectFault, SubjectLink
from triton_magics.model import Benchmark, Environment, Sweep, Validation

if TYPE_CHECKING:
    from triton_magics.harness.process.reporter import Reporter

CHUNK_BYTES = 2**16
ANSWER_S = 0.01  # the engine sends a waiting job within this time
POLL_S = 0.1  # between two checks whether the GPU is free for a warm-up
QUIET_POLLS = 10  # without a validation, until the warm-up for a timing goes on

REVIEW = "triton_magics.harness.timing.bench_review"
PROFILE = "triton_magics.harness.profile_job"
CONTENTS = "triton_magics.harness.timing.judged_contents"
CONDITIONS = "triton_magics.harness.timing.gpu_conditions"
PEAK_RATES = "triton_magics.harness.timing.peak_rates"
JUDGED = ("validate",)  # jobs that the judge executes
TIMED = ("bench", "selftest", "sweep")
WITHOUT_VERSION = ("plan", "profile")  # jobs that load no version in this process
EXECUTE = f"{execute.__module__}:{execute.__name__}"
FINISH = f"{finish.__module__}:{finish.__name__}"

Send = Callable[[Ready | Progress | Reply], None]


def main(argv: list[str] | None = None) -> None:
    """Run a worker or the fork server."""
    options = _parse(argv)
    move_to_named_cores()
    if options.fork_server:
        fork_server.serve(options.fd, work, _prepare)
    else:
        seccomp.refuse_signals(parent_watch.ancestors())
        work(options.mode, options.fd)


def work(mode: Mode, fd: int, *, environment: Environment | None = None) -> None:
    """Warm up, report readiness, and execute jobs until the engine hangs up.

    Args:
        mode: how kernels are run.
        fd: the data socket.
        environment: given if the parent process has warmed up before the fork.
    """
    started = time.monotonic()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    faulthandler.enable()
    parent_watch.install_stack_dump_handler()
    parent_watch.die_with_parent()
    parent_watch.prefer_oom_kill()
    if mode == "compiler":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # detecting a GPU takes 0.04 s and loads its driver
        enter_from_environment()
    if mode not in ("interpreter", "tools"):
        compile_processes.start_compile_processes(_compile, close=(fd,))
    link = _start_subject(mode, fd, environment) if mode in ("gpu", "interpreter") else None
    if mode == "gpu":
        measuring_process.start_if_needed()
        neighbours.start_if_needed()
    # Last: the processes forked above have their own, or call no version.
    enter_from_environment(runs_versions=mode not in ("gpu", "interpreter"))
    data = socket.socket(fileno=parent_watch.move_to_high_descriptor(fd))
    descriptor_reserve.reserve_descriptors()
    parent_watch.start_hangup_watch(data.fileno())
    send = _sender(data)
    if link:
        link.on_violation = partial(_break_protocol, data)
    if mode == "tools":
        environment = importlib.import_module(PROFILE).prepare_worker()
    _warm_up(mode, environment, data, partial(_send_ready, send, started, link))
    # Last, so that a user's module can't shadow one of torch's.
    sys.path.append(os.getcwd())
    if link:
        subject_process.hide_memory()
    orders = _orders(data, link)
    serve(_with_spares(orders) if mode == "tools" else orders, send, link)
    _leave()


def _start_subject(mode: Mode, fd: int, environment: Environment | None) -> SubjectLink:
    """Fork the subject process, which creates its context while this one does."""

    def prepare() -> None:
        if environment is None:
            importlib.import_module("triton_magics.harness.process.device").create_context(mode)
            importlib.import_module("triton_magics.harness.correctness.remote_calls").name_record()

    link: SubjectLink = subject_process.start(prepare, close=fd)
    return link


def _break_protocol(data: socket.socket) -> NoReturn:
    """Send what is no frame: the subject process has written into the channel."""
    with contextlib.suppress(OSError):
        data.sendall(b"\xff" * HEADER.size)
    os._exit(CODE_CONNECTION_CLOSED)


def _compile(order: dict[str, Any]) -> dict[str, Any] | None:
    orders = importlib.import_module("triton_magics.harness.correctness.survey_order")
    following: dict[str, Any] | None = orders.execute(order)
    return following


def _prepare() -> Environment | None:
    prepared: Environment | None = importlib.import_module(
        "triton_magics.harness.warm_up"
    ).prepare()
    return prepared


def _parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="triton_magics.harness")
    parser.add_argument("--mode", choices=("gpu", "interpreter", "compiler", "tools"))
    parser.add_argument("--fork-server", action="store_true")
    parser.add_argument("--fd", type=int, required=True)
    return parser.parse_args(argv)


def _warm_up(
    mode: Mode,
    environment: Environment | None,
    data: socket.socket,
    ready: Callable[[Environment, WarmUpState], None],
) -> None:
    """Create the context, report it, and warm up until a job comes."""
    if environment is None:
        device = importlib.import_module("triton_magics.harness.process.device")
        environment = device.create_context(mode)
        if mode == "gpu" and (link := subject_process.link()):
            link.can_share = subject_process.can_share(link, device.GPU)
        ready(environment, "due")
        postpone = partial(ready, environment, "postponed")
        warm_up = importlib.import_module("triton_magics.harness.warm_up")
        is_wanted = partial(_is_wanted, data, environment.gpu_uuid, postpone)
        if not warm_up.run(mode, is_wanted, partial(is_wanted, for_timing=True)):
            return
    ready(environment, "done")


def _is_wanted(
    data: socket.socket,
    gpu_uuid: str | None,
    postpone: Callable[[], None],
    *,
    for_timing: bool = False,
) -> bool:
    """Return whether a job has come, or comes in answer to the last frame.

    Wait while another process times on the GPU or is about to: a warm-up would disturb the timing.
    The warm-up for a timing also waits until a series of validations is over, which needs none.
    """
    has_job = _is_waiting(data, ANSWER_S)
    if has_job or not _is_busy(gpu_uuid, for_timing):
        return has_job
    postpone()
    quiet_polls = 0
    while not has_job and quiet_polls < (QUIET_POLLS if for_timing else 1):
        has_job = _is_waiting(data, POLL_S)
        quiet_polls = 0 if _is_busy(gpu_uuid, for_timing) else quiet_polls + 1
    return has_job


def _is_busy(gpu_uuid: str | None, for_timing: bool) -> bool:
    is_delayed = for_timing and gpu_lock.is_for_validations(gpu_uuid)
    return is_delayed or gpu_lock.is_reserved(gpu_uuid)


def _is_waiting(data: socket.socket, within_s: float) -> bool:
    return bool(select.select([data], [], [], within_s)[0])


def _send_ready(
    send: Send,
    started: float,
    link: SubjectLink | None,
    environment: Environment,
    warm_up: WarmUpState,
) -> None:
    send(
        Ready(
            environment=environment,
            pid=os.getpid(),
            subject_pid=link.pid if link else None,
            helper_pids=tuple(filter(None, (measuring_process.pid(), neighbours.pid()))),
            warm_s=time.monotonic() - started,
            warm_up=warm_up,
        )
    )


def _scratch() -> Path | None:
    """Return the folder of this worker, None if it has none."""
    folder = os.environ.get(SCRATCH)
    return Path(folder) if folder else None


def _sender(data: socket.socket) -> Send:
    """Return a thread-safe function that sends a frame, or ends the process at hang-up."""
    lock = threading.Lock()

    def send(frame: Ready | Progress | Reply) -> None:
        message = encode(frame, _scratch())
        with lock:
            try:
                data.sendall(message)
            except OSError:
                os._exit(CODE_CONNECTION_CLOSED)

    return send


def _orders(data: socket.socket, link: SubjectLink | None) -> Iterator[Order]:
    """Yield the jobs until the connection ends; end with the subject process."""
    reader = FrameReader(_scratch())
    while chunk := _receive(data, link):
        for frame in reader.feed(chunk):
            if isinstance(frame, Order):
                yield frame


def _with_spares(orders: Iterator[Order]) -> Iterator[Order]:
    """Yield the jobs; once one is answered, start the process of the next profile."""
    for order in orders:
        yield order
        importlib.import_module(PROFILE).prepare_next(order.job)


def _receive(data: socket.socket, link: SubjectLink | None) -> bytes:
    while link and data.fileno() not in select.select([data.fileno(), link.fileno()], [], [])[0]:
        link.check_idle()
    return data.recv(CHUNK_BYTES)


def serve(orders: Iterator[Order], send: Send, link: SubjectLink | None = None) -> None:
    """Execute each job and send its answer.

    Args:
        orders: the jobs.
        send: sends a frame.
        link: to the subject process, which executes every job that the judge does not.
    """
    for order in orders:
        is_judge = link is not None and link.can_share and order.job.kind in JUDGED
        loads = order.job.kind not in WITHOUT_VERSION
        with Execution(order, send, calls_versions=loads and link is None) as execution:
            if link is None or is_judge or not loads:
                answer = handler_of(order.job.kind)(order.job, execution.reporter)
                execution.set_answer(*answer)
                if link and is_judge and not _is_reusable(link):
                    execution.set_answer(answer[0], retire=True)
            else:
                execution.reply = _forward(order, send, link, execution.reporter)
        _send_reply(execution.reply, send)


def _is_reusable(link: SubjectLink) -> bool:
    """End the job in the subject process; return False if a version has damaged that process.

    The verdict stands in both cases.
    """
    try:
        return not link.request(FINISH, Finished).is_exhausted
    except SubjectFault:
        return False


def _forward(order: Order, send: Send, link: SubjectLink, report: Reporter) -> Reply:
    """Execute a job in the subject process, and forward its progress."""
    own = order.evolve(nonce=secrets.token_hex(16))
    if order.job.kind in TIMED:  # in a sandbox the subject process can't keep what it measures
        importlib.import_module(PEAK_RATES).measure_ahead(report)

    def forward(message: bytes) -> None:
        try:
            progress = Progress.model_validate_json(message)
        except ValueError:
            link.on_violation()
        if progress.compilation is not None:  # an answer past the judge
            link.on_violation()
        send(progress.evolve(nonce=order.nonce))

    judge = None
    if isinstance(order.job, BenchJob):
        memory = link.memory if link.can_share else None
        judge = importlib.import_module(CONTENTS).ContentsJudge(order.job, memory)
    answer = judge.answer if judge else None
    reply = link.request(EXECUTE, Reply, emit=forward, answer=answer, order=own)
    is_verdict = isinstance(reply.answer, Validation) and link.can_share
    if reply.nonce != own.nonce or is_verdict:
        link.on_violation()
    if judge and isinstance(reply.answer, Benchmark):
        reviewed = importlib.import_module(REVIEW).review(order.job, reply.answer, judge, report)
        reply = reply.evolve(answer=reviewed, retire=reply.retire or not reviewed.passed)
    if isinstance(reply.answer, Benchmark | Sweep):
        check = importlib.import_module(CONDITIONS).check_neighbours
        reply = reply.evolve(answer=check(reply.answer, neighbours.foreign))
    return reply.evolve(nonce=order.nonce)


def _send_reply(reply: Reply, send: Send) -> None:
    """Send the reply, or the reason why it can't be sent (too large, invalid Unicode)."""
    try:
        send(reply)
    except Exception as error:  # noqa: BLE001 (the loop's: no job goes unanswered)
        send(Reply(nonce=reply.nonce, answer=fault_of(error), retire=True))


def _leave() -> None:
    """End at once: no atexit hook or thread of code under test keeps the process alive."""
    flush()
    os._exit(0)


if __name__ == "__main__":
    main()
