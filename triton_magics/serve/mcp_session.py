"""The session of an MCP client: its current op and version, and the context it has spent."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field

from triton_magics.serve.job_model import Caller
from triton_magics.serve.served_job import ServedJob

CHARS_PER_TOKEN = 3.5  # code and tables; prose has 4
DEFAULT_LIMIT = 128_000  # tokens
BANDS_PCT = (50, 70, 90)
SUMMARY_PCT = 70
MAX_SESSIONS = 256
_ADVICE = {
    0: "carry on",
    50: "finish the op that you work on before you begin another",
    70: "docs/summarization.md has the state of the work: a new session can go on from it",
    90: "start a new session from docs/summarization.md now",
}


@dataclass
class McpSession:
    """State of one client.

    Attributes:
        caller: the owner of its jobs.
        keeps_state: False for a client without a session: its next call is another client's.
        op: the op of its last call.
        versions: op -> the version that it wrote or named last.
        jobs: verb and request -> the job that goes on, so that a repeated call starts no second.
        limit_tokens: of the model's context.
        n_calls, n_chars: of the calls and answers so far.
        has_summary: the summary was written at `SUMMARY_PCT`.
    """

    caller: Caller
    keeps_state: bool = True
    op: str | None = None
    versions: dict[str, str] = field(default_factory=dict)
    jobs: dict[str, ServedJob] = field(default_factory=dict)
    limit_tokens: int = DEFAULT_LIMIT
    n_calls: int = 0
    n_chars: int = 0
    has_summary: bool = False

    def add(self, n_chars: int) -> None:
        """Count a call with its arguments and answer."""
        self.n_calls += 1
        self.n_chars += n_chars

    @property
    def n_tokens(self) -> int:
        """Tokens that the calls and answers took, about."""
        return round(self.n_chars / CHARS_PER_TOKEN)

    @property
    def used_pct(self) -> float:
        """Share of the limit, percent."""
        return 100 * self.n_tokens / self.limit_tokens

    @property
    def band_pct(self) -> int:
        """The highest band that is reached; 0 below the first."""
        return max((band for band in BANDS_PCT if self.used_pct >= band), default=0)

    @property
    def needs_summary(self) -> bool:
        """True once, when the share reaches `SUMMARY_PCT`."""
        return self.used_pct >= SUMMARY_PCT and not self.has_summary

    @property
    def usage(self) -> str:
        """One line for the client."""
        return (
            f"{self.n_calls} calls of this session took about {self.n_tokens:,} of "
            f"{self.limit_tokens:,} tokens ({self.used_pct:.0f} %): {_ADVICE[self.band_pct]}"
        )


class McpSessions:
    """The sessions of a server, by the id that the transport gives; the oldest are forgotten.

    Args:
        limit_tokens: of a model's context.
    """

    def __init__(self, limit_tokens: int = DEFAULT_LIMIT) -> None:
        self._limit = limit_tokens
        self._lock = threading.Lock()
        self._sessions: OrderedDict[Caller, McpSession] = OrderedDict()

    def get(self, caller: Caller) -> McpSession:
        """Return the session of a caller; without a session's id, one for this call alone."""
        if not caller.session:
            return McpSession(caller, keeps_state=False, limit_tokens=self._limit)
        with self._lock:
            session = self._sessions.pop(caller, None)
            session = session or McpSession(caller, limit_tokens=self._limit)
            self._sessions[caller] = session
            while len(self._sessions) > MAX_SESSIONS:
                self._sessions.popitem(last=False)
            return session


__all__ = ["McpSession", "McpSessions"]
