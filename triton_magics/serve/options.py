"""The options of `triton-magics serve`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Interface = Literal["both", "fastapi", "mcp"]


@dataclass(frozen=True)
class ServeOptions:
    """Options of a server.

    Attributes:
        host, port: address to listen at.
        unix_socket: path of a socket to listen at in place of them, for this user alone.
        mode: REST (`fastapi`), MCP, or both on one port.
        allowed_hosts: further names in the header Host; loopback names are always allowed.
        allowed_origins: values of the header Origin; none by default.
        max_body_bytes: largest body of a request.
        max_source_bytes: largest source of a kernel.
        n_waiting: most jobs that wait; more are refused with 429.
        queue_s: longest time that a job waits while its client does not ask for it, seconds.
        run_s: longest time that a job runs, seconds.
        retention_s: ended jobs are kept for so long.
        drain_s: time for running jobs after SIGTERM.
        n_streams: most event streams that one client has open.
        token_file: the clients' tokens; None: no token is asked for.
        tls_cert, tls_key: files of the certificate and its key; None: plain HTTP.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    unix_socket: Path | None = None
    mode: Interface = "both"
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    max_body_bytes: int = 2 * 2**20
    max_source_bytes: int = 512 * 2**10
    n_waiting: int = 100
    queue_s: float = 300.0
    run_s: float = 600.0
    retention_s: float = 3600.0
    drain_s: float = 30.0
    n_streams: int = 8
    token_file: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None

    @property
    def is_loopback(self) -> bool:
        """True where only this machine can connect."""
        return self.unix_socket is not None or self.host in LOOPBACK


LOOPBACK = ("127.0.0.1", "localhost", "::1")
