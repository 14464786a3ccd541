"""A real Jupyter kernel that runs cells, and what they give."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager, start_new_kernel

REPOSITORY = Path(__file__).parents[2]
Watcher = Callable[[dict[str, Any]], None]


@dataclass
class Reply:
    """Status of a cell, and its outputs in order."""

    status: str
    outputs: list[dict[str, Any]] = field(default_factory=list)

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Return the contents of the outputs of one kind."""
        return [o["content"] for o in self.outputs if o["msg_type"] == kind]

    @property
    def text(self) -> str:
        """The cell's result as plain text."""
        return "".join(o["data"]["text/plain"] for o in self.of("execute_result"))

    @property
    def kinds(self) -> list[str]:
        """`execute_result`, `display_data`, ... as they came."""
        return [o["msg_type"] for o in self.outputs]

    @property
    def stdout(self) -> str:
        """Return the printed text."""
        return "".join(o["text"] for o in self.of("stream"))


@dataclass
class Kernel:
    """A kernel that runs cells one by one."""

    manager: KernelManager
    client: BlockingKernelClient
    folder: Path

    def __call__(
        self, code: str, *, watch: Callable[[dict[str, Any]], None] | None = None
    ) -> Reply:
        reply = Reply("")

        def keep(message: dict[str, Any]) -> None:
            if message["msg_type"] not in ("status", "execute_input"):
                reply.outputs.append(message)
                if watch:
                    watch(message)

        answer = self.client.execute_interactive(code, timeout=120, output_hook=keep)
        reply.status = answer["content"]["status"]
        return reply

    def interrupt(self) -> None:
        """Interrupt as the manager does, which can't be used while it waits for a cell."""
        os.killpg(os.getpgid(self.manager.provisioner.pid), signal.SIGINT)

    def subshell(self) -> str:
        """Return the name of a new subshell, requested as JupyterLab does."""
        message = self.client.session.msg("create_subshell_request", {})
        self.client.control_channel.send(message)
        reply = self.client.control_channel.get_msg(timeout=120)
        return str(reply["content"]["subshell_id"])

    def send_to_comm(self, comm: str, data: dict[str, Any], subshell: str) -> None:
        """Send the message of a click in a frontend."""
        message = self.client.session.msg("comm_msg", {"comm_id": comm, "data": data})
        message["header"]["subshell_id"] = subshell
        self.client.shell_channel.send(message)

    def next_display_update(self, is_match: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait for the first matching update of an output, with no cell running."""
        while True:
            message = self.client.get_iopub_msg(timeout=120)
            if message["msg_type"] == "update_display_data" and is_match(message):
                return message

    def complete(self, code: str) -> dict[str, Any]:
        return self.client.complete(code, len(code), reply=True, timeout=120)["content"]


@contextmanager
def started(folder: Path) -> Iterator[Kernel]:
    """Start a kernel in a folder; it imports this package."""
    manager, client = start_new_kernel(cwd=str(folder), extra_arguments=["--log-level=ERROR"])
    try:
        kernel = Kernel(manager, client, folder)
        kernel(f"import sys; sys.path.insert(0, {str(REPOSITORY)!r})")
        yield kernel
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
