"""The events of a job, read from streams of server-sent events."""

from __future__ import annotations

import json
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx

from triton_magics.client.answers import CONNECT_S, RETRIES, Call, result_of, retry_pause_s
from triton_magics.client.server_errors import ConnectionLost
from triton_magics.line_splitter import LineSplitter

SILENCE_S = 30.0  # longest pause in a stream; the server writes every 5 s


class ServedEvent(NamedTuple):
    """An event of a job: `state`, `progress`, `output`, `partial` or `end`, and its data."""

    number: int
    kind: str
    data: dict[str, Any]


class JobEvents:
    """The events of a job, over one connection after another.

    Args:
        job_id: which.
        after: number of the last event that is known.

    Attributes:
        newest: number of the newest event.
        has_ended: the job has ended, and so have its events.
    """

    def __init__(self, job_id: str, after: int) -> None:
        self.newest = after
        self.has_ended = False
        self._path = f"/job/{quote(job_id, safe='')}/events"
        self._n_tries = 0
        self._splitter = LineSplitter()
        self._fields: dict[str, str] = {}

    def request(self) -> dict[str, Any]:
        """Return the arguments of httpx for the events after the newest."""
        self._splitter, self._fields = LineSplitter(), {}
        return {
            "method": "GET",
            "url": self._path,
            "headers": {"Last-Event-ID": str(self.newest)},
            "timeout": httpx.Timeout(SILENCE_S, connect=CONNECT_S),
        }

    def add(self, data: bytes) -> list[ServedEvent]:
        """Add bytes of a connection; return the events that end in them."""
        events = []
        for line in self._splitter.add(data):
            if line:
                name, _, value = line.partition(": ")
                self._fields[name] = value
            elif event := self._take():
                events.append(event)
                self._n_tries = 0
        return events

    def _take(self) -> ServedEvent | None:
        """Return the event of the fields until now; None for a heartbeat."""
        fields, self._fields = self._fields, {}
        if "data" not in fields:
            return None
        number, kind = fields.get("id", ""), fields.get("event", "")
        self.newest = int(number) if number.isdecimal() else self.newest
        self.has_ended = kind == "end"
        return ServedEvent(self.newest, kind, json.loads(fields["data"]))

    def pause_s(self, end: httpx.Response | httpx.TransportError) -> float:
        """Return the pause before the next connection, seconds.

        Args:
            end: how the last one ended.

        Raises:
            ServerError: the server refuses, or was lost too often without an event.
        """
        attempt, self._n_tries = self._n_tries, self._n_tries + 1
        is_last = attempt == RETRIES and not self.has_ended
        if isinstance(end, httpx.Response) and not end.is_success:
            if is_last or end.status_code not in (429, 503):
                result_of(Call("GET", self._path, dict), end)
            return retry_pause_s(end, attempt)
        if is_last:
            reason = str(end) if isinstance(end, Exception) else "the stream ended early"
            raise ConnectionLost(0, {"message": reason or type(end).__name__})
        return 0.5 * (1 << attempt)


__all__ = ["JobEvents", "ServedEvent"]
