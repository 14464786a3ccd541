"""The worker: `python -m triton_magics.worker --mode gpu --fd 3`. Warms up, then does jobs.

With `--zygote --fd 3` it is instead a process that forks such workers (see `zygote`).

All that it says goes over its data socket as frames; what code under test prints goes to stdout and
stderr. Only an answer that carries the job's nonce counts. The nonce is kept in closures, out of
reach of a kernel's globals: that protects from faults (a kernel that ends the process, scribbles
over descriptors or prints something that looks like a verdict), not from malice. Code in this
process that wants to forge an answer can.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import faulthandler
import importlib
import os
import select
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from triton_magics.engine.protocol import (
    CODE_CONNECTION_CLOSED,
    Answer,
    FrameReader,
    Mode,
    Order,
    Progress,
    Ready,
    Rehearsal,
    Reply,
    WorkerFault,
    encode,
)
from triton_magics.errors import UserError
from triton_magics.model import Environment
from triton_magics.worker import compilers, descriptors, lock, watch, zygote
from triton_magics.worker.report import Reporter

CHUNK_BYTES = 2**16
ANSWER_S = 0.01  # in which the engine gives a job to the one that it was waiting for
LOOK_S = 0.1  # between two looks whether the GPU is free for a rehearsal
MESSAGE_CHARS = 2_000
TRACEBACK_CHARS = 50_000

Send = Callable[[Ready | Progress | Reply], None]
Handler = Callable[..., tuple[Answer, bool]]


def main(argv: list[str] | None = None) -> None:
    """A worker, or the zygote of many."""
    options = _parse(argv)
    if options.zygote:
        zygote.serve(options.fd, work)
    else:
        work(options.mode, options.fd)


def work(mode: Mode, fd: int, *, environment: Environment | None = None) -> None:
    """Warms up, says so, and does jobs until the engine hangs up.

    Args:
        mode: how it runs kernels.
        fd: its data socket.
        environment: where it runs, if it is a fork of a process that has warmed up.
    """
    started = time.monotonic()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    faulthandler.enable()
    watch.tell_where_when_asked()
    watch.die_with_parent()
    watch.be_expendable()
    if mode == "compiler":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # to ask for a GPU takes 0.04 s, and its driver
    if mode != "interpreter":
        compilers.stand_by(_compile, close=(fd,))
    data = socket.socket(fileno=watch.out_of_reach(fd))
    descriptors.keep_some_back()
    watch.watch(data.fileno())
    send = _sender(data)
    _warm_up(mode, environment, data, partial(_tell_ready, send, started))
    # Last, so that a module of the user's can't shadow one of torch's.
    sys.path.append(os.getcwd())
    serve(_orders(data), send)
    _leave()


def _compile(order: dict[str, Any]) -> None:
    precompile = importlib.import_module("triton_magics.worker.precompile")
    (precompile.rehearse if order.get("rehearsal") else precompile.obey)(order)


def _parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="triton_magics.worker")
    parser.add_argument("--mode", choices=("gpu", "interpreter", "compiler"))
    parser.add_argument("--zygote", action="store_true")
    parser.add_argument("--fd", type=int, required=True)
    return parser.parse_args(argv)


def _warm_up(
    mode: Mode,
    environment: Environment | None,
    data: socket.socket,
    ready: Callable[[Environment, Rehearsal], None],
) -> None:
    """Makes the context, says that it is there, and rehearses until a job comes."""
    if environment is None:
        resources = importlib.import_module("triton_magics.worker.resources")
        environment = resources.begin(mode)
        ready(environment, "due")
        put_off = partial(ready, environment, "put off")
        if not resources.rehearse(mode, partial(_wanted, data, environment.gpu_uuid, put_off)):
            return
    ready(environment, "done")


def _wanted(data: socket.socket, gpu_uuid: str | None, put_off: Callable[[], None]) -> bool:
    """Whether a job has come, or comes as the answer to what was said just now.

    Where somebody times on the GPU, or is about to, that is waited for: a rehearsal would be heard.
    """
    wanted = _is_waiting(data, ANSWER_S)
    if not wanted and lock.spoken_for(gpu_uuid):
        put_off()
    while not wanted and lock.spoken_for(gpu_uuid):
        wanted = _is_waiting(data, LOOK_S)
    return wanted


def _is_waiting(data: socket.socket, within_s: float) -> bool:
    return bool(select.select([data], [], [], within_s)[0])


def _tell_ready(send: Send, started: float, environment: Environment, rehearsal: Rehearsal) -> None:
    warm_s = time.monotonic() - started
    send(Ready(environment=environment, pid=os.getpid(), warm_s=warm_s, rehearsal=rehearsal))


def _sender(data: socket.socket) -> Send:
    """What sends a whole frame at a time, from whichever thread; ends the process at hang-up."""
    lock = threading.Lock()

    def send(frame: Ready | Progress | Reply) -> None:
        message = encode(frame)
        with lock:
            try:
                data.sendall(message)
            except OSError:
                os._exit(CODE_CONNECTION_CLOSED)

    return send


def _orders(data: socket.socket) -> Iterator[Order]:
    """The jobs as they come; ends with the connection."""
    reader = FrameReader()
    while chunk := data.recv(CHUNK_BYTES):
        for frame in reader.feed(chunk):
            if isinstance(frame, Order):
                yield frame


def serve(orders: Iterator[Order], send: Send) -> None:
    """Does each job and sends its answer."""
    for order in orders:
        reporter = Reporter(send, order.nonce)
        reply = _answer(order, reporter)
        reporter.close()
        _flush()
        _send_reply(reply, send)


def _answer(order: Order, reporter: Reporter) -> Reply:
    try:
        answer, retire = _handler(order.job.kind)(order.job, reporter)
        retire = retire or descriptors.none_left()
        return Reply(nonce=order.nonce, answer=answer, retire=retire)
    except BaseException as error:  # noqa: BLE001 (the loop's; SystemExit must not end it silently)
        if descriptors.ran_out(error):
            error = UserError(descriptors.NONE_LEFT)
        return Reply(nonce=order.nonce, answer=_fault(error), retire=True)
    finally:
        compilers.end()


def _handler(kind: str) -> Handler:
    """`run(job, reporter) -> (answer, retire)` of the module named like the job."""
    handler: Handler = importlib.import_module(f"triton_magics.worker.{kind}").run
    return handler


def _fault(error: BaseException) -> WorkerFault:
    """The error as a value: text that can be sent, whatever is in it."""
    from triton_magics.worker.load import (
        UserFault,  # late: it imports torch, as handlers have by now
    )

    user = isinstance(error, UserFault | UserError)
    message = str(error) if user else traceback.format_exception_only(error)[-1].strip()
    trace = "".join(traceback.format_exception(error))
    return WorkerFault(
        user=user,
        message=_sendable(message)[:MESSAGE_CHARS],
        traceback=_sendable(trace)[-TRACEBACK_CHARS:],
    )


def _sendable(text: str) -> str:
    """The text with lone surrogates written out, which no JSON can carry."""
    return text.encode("utf-8", "backslashreplace").decode()


def _send_reply(reply: Reply, send: Send) -> None:
    """Sends it, or says why it can't be sent (too large, text that is no Unicode)."""
    try:
        send(reply)
    except Exception as error:  # noqa: BLE001 (the loop's: no job goes unanswered)
        send(Reply(nonce=reply.nonce, answer=_fault(error), retire=True))


def _flush() -> None:
    """Lets what was printed, from Python or from C (a kernel's prints), go before the answer."""
    for stream in (sys.stdout, sys.stderr):
        # Code under test may have closed or replaced it.
        with contextlib.suppress(ValueError, OSError, AttributeError):
            stream.flush()
    ctypes.CDLL(None).fflush(None)


def _leave() -> None:
    """Ends here and now: no atexit hook or thread of code under test keeps it alive."""
    _flush()
    os._exit(0)


if __name__ == "__main__":
    main()
