"""Sessions of remote notebooks: their jobs run on this server's executor, their files stay there.

A session is a stream of frames in both directions (`execution.remote_frames`). It outlives its
connection: frames have numbers, and a client that comes back asks for those after its last one.
"""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from queue import SimpleQueue

from fastapi import FastAPI, Response
from fastapi import Request as HttpRequest
from fastapi.responses import StreamingResponse

from triton_magics.errors import QueueFull, Unavailable, UnknownJob
from triton_magics.execution import Limits
from triton_magics.execution.protocol import ProtocolError
from triton_magics.execution.remote_frames import RemoteFrame, SubmitJob, read_frame
from triton_magics.execution.remote_host import ExecutorHost
from triton_magics.execution.resumable import KEEP_S, SavedFrames
from triton_magics.serve import following
from triton_magics.serve.http_answers import BadRequest, FieldFault, caller_of, json_answer
from triton_magics.serve.job_model import Caller
from triton_magics.serve.job_service import JobService
from triton_magics.serve.rest import read_number

PATH = "/v1/executor/sessions"
HEARTBEAT_S = 1.0
HELLO = 1  # number of the first frame; those of `?number=` follow
MAX_SESSIONS = 16  # of one client


class SessionStream:
    """The host's end of a session; frames go out when the client asks for them."""

    def __init__(self) -> None:
        self._inbox: SimpleQueue[RemoteFrame | None] = SimpleQueue()
        self._saved = SavedFrames()
        self._n_received = 0
        self._lock = threading.Lock()
        self._listeners: list[Callable[[], None]] = []
        self.is_closed = False

    def send(self, frame: RemoteFrame) -> None:
        """Keep a frame for the client.

        Raises:
            OSError: the session has ended.
        """
        with self._lock:
            if self.is_closed:
                raise OSError("the session is closed")
            self._saved.add(frame.model_dump_json().encode())
            self._saved.forget(self._saved.newest)
        self._notify()

    def receive(self) -> RemoteFrame | None:
        """Wait for a frame of the client; None at the end."""
        return self._inbox.get()

    def close(self) -> None:
        """End the session; a second time does nothing."""
        with self._lock:
            was_closed, self.is_closed = self.is_closed, True
        if not was_closed:
            self._inbox.put(None)
            self._notify()

    def take(self, number: int, frame: RemoteFrame) -> None:
        """Take a frame of the client; one that came before is dropped."""
        with self._lock:
            if number <= self._n_received:
                return
            self._n_received = number
        self._inbox.put(frame)

    def lines(self, after: int) -> list[tuple[int, bytes]]:
        """Return the frames after the one of that number, as lines.

        Raises:
            UnknownJob: they are not saved any more.
        """
        with self._lock:
            try:
                frames = self._saved.after(after)
            except LookupError:
                message = "the frames after that one are not saved: begin a new session"
                raise UnknownJob(message) from None
        return [(each[0], b'{"number":%d,"frame":%s}\n' % each) for each in frames]

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call a listener after each frame; return the function that ends it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def _notify(self) -> None:
        for listener in tuple(self._listeners):
            listener()


class ExecutorSession:
    """A client's stream and the host that answers it.

    Attributes:
        id: unique, and no one can guess it.
        caller: whose it is.
        n_readers: connections until now; only the newest gets frames.
    """

    def __init__(self, service: JobService, caller: Caller, hello: RemoteFrame) -> None:
        self.id, self.caller = uuid.uuid4().hex, caller
        self.stream = SessionStream()
        self.n_readers = 0
        self._timer: threading.Timer | None = None
        settings = service.lab.settings
        self.host = ExecutorHost(
            service.lab.jobs.executor, self.stream, service.version, Limits.of(settings),
            longest_s=service.options.run_s, ncu=settings.ncu,
        )  # fmt: skip
        self.stream.take(HELLO, hello)
        threading.Thread(target=self.host.serve, name="executor-session", daemon=True).start()

    def attach(self) -> int:
        """Note a new connection; return its number."""
        self.detach(None)
        self.n_readers += 1
        return self.n_readers

    def detach(self, reader: int | None) -> None:
        """Note that a connection ended; without another one the session ends after a while."""
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if reader == self.n_readers and not self.stream.is_closed:
            self._timer = threading.Timer(KEEP_S, self._expire)
            self._timer.daemon = True
            self._timer.start()

    def _expire(self) -> None:
        """End the session, unless a job of it still runs."""
        if self.host.n_jobs:
            self.detach(self.n_readers)
        else:
            self.stream.close()


class ExecutorRoutes:
    """The routes of remote notebooks.

    Args:
        service: its executor runs the jobs.
    """

    def __init__(self, service: JobService) -> None:
        self.service = service
        self._sessions: dict[str, ExecutorSession] = {}

    def add_to(self, app: FastAPI) -> None:
        """Add the routes."""
        for path, method, function in (
            (PATH, "POST", self.open),
            (f"{PATH}/{{session_id}}", "DELETE", self.leave),
            (f"{PATH}/{{session_id}}/frames", "POST", self.take_frame),
            (f"{PATH}/{{session_id}}/frames", "GET", self.stream_frames),
        ):
            app.add_api_route(
                path, function, methods=[method], response_class=Response, include_in_schema=False
            )

    def close(self) -> None:
        """End all sessions; their jobs are cancelled."""
        for session in tuple(self._sessions.values()):
            session.detach(None)
            session.stream.close()

    async def open(self, request: HttpRequest) -> Response:
        """Begin a session with the client's first frame."""
        self._refuse_when_stopping()
        self._forget_closed()
        hello = await _frame_of(request)
        caller = caller_of(request)
        n_open = sum(each.caller.name == caller.name for each in self._sessions.values())
        if n_open >= MAX_SESSIONS:
            raise QueueFull(f"{n_open} sessions are open already", retry_after_s=5)
        session = ExecutorSession(self.service, caller, hello)
        self._sessions[session.id] = session
        session.detach(0)  # it ends unless the client asks for frames
        return json_answer({"session": session.id})

    async def take_frame(self, request: HttpRequest, session_id: str) -> Response:
        """Take a frame of the client; `?number=3` counts them from 1."""
        session = self._find(request, session_id)
        number = read_number(request, "number", 0, 10**9)
        frame = await _frame_of(request)
        if isinstance(frame, SubmitJob):
            self._refuse_when_stopping()
            most = self.service.options.n_waiting
            if session.host.n_jobs >= most:
                raise QueueFull(f"{most} jobs wait; ask again later", retry_after_s=5)
        session.stream.take(HELLO + number, frame)
        return json_answer({})

    async def stream_frames(self, request: HttpRequest, session_id: str) -> Response:
        """Stream the frames after `?after=7`, one a line; an empty line each second."""
        session = self._find(request, session_id)
        after = read_number(request, "after", 0, 10**18)
        session.stream.lines(after)
        headers = {"X-Accel-Buffering": "no"}
        lines = self._lines(session, after)
        return StreamingResponse(lines, media_type="application/x-ndjson", headers=headers)

    async def leave(self, request: HttpRequest, session_id: str) -> Response:
        """End a session; its jobs are cancelled."""
        session = self._find(request, session_id)
        session.stream.close()
        self._forget_closed()
        return json_answer({})

    async def _lines(self, session: ExecutorSession, after: int) -> AsyncIterator[bytes]:
        reader = session.attach()
        stream = session.stream
        try:
            with following.waking(stream) as wake:
                while reader == session.n_readers:
                    wake.clear()
                    has_ended = stream.is_closed or self._is_stopped(session)
                    lines = stream.lines(after)
                    for number, line in lines:
                        after = number
                        yield line
                    if has_ended:
                        yield b'{"number":%d,"frame":null}\n' % after
                        stream.close()
                        return
                    with suppress(TimeoutError):
                        await asyncio.wait_for(wake.wait(), HEARTBEAT_S)
                        continue
                    yield b"\n"
        finally:
            session.detach(reader)

    def _is_stopped(self, session: ExecutorSession) -> bool:
        return self.service.is_draining and not session.host.n_jobs

    def _refuse_when_stopping(self) -> None:
        if self.service.is_draining:
            raise Unavailable("the server is stopping: it takes no more jobs")

    def _find(self, request: HttpRequest, session_id: str) -> ExecutorSession:
        """Return a session of the client.

        Raises:
            UnknownJob: there is none of that id, or it is another client's.
        """
        session = self._sessions.get(session_id)
        if session is None or session.caller.name != caller_of(request).name:
            raise UnknownJob("there is no such session: it has ended, or the server started again")
        return session

    def _forget_closed(self) -> None:
        for session_id, session in tuple(self._sessions.items()):
            if session.stream.is_closed:
                del self._sessions[session_id]


async def _frame_of(request: HttpRequest) -> RemoteFrame:
    try:
        return read_frame(await request.body())
    except ProtocolError as error:
        raise BadRequest([FieldFault("", str(error), "frame")]) from None


__all__ = ["ExecutorRoutes"]
