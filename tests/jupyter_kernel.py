"""A real Jupyter kernel, as a notebook has it."""

from __future__ import annotations

import os
import queue
import signal
import time
from typing import Any

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager


class Notebook:
    """A kernel and what its cells print."""

    def __init__(self) -> None:
        self.manager = KernelManager()
        self.manager.start_kernel()
        self.connect()

    def connect(self) -> None:
        self.client: BlockingKernelClient = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=120)

    def start(self, code: str) -> None:
        self.client.execute(code)

    def wait_for(self, text: str) -> None:
        while True:
            message = self.client.get_iopub_msg(timeout=120)
            assert message["msg_type"] != "error", message["content"]
            if message["msg_type"] == "stream" and text in message["content"]["text"]:
                return

    def run(self, code: str, within_s: float = 120.0) -> list[dict[str, Any]]:
        """Run a cell to its end; return its messages: streams, displays, errors."""
        request_id, messages = self.client.execute(code), []
        deadline = time.monotonic() + within_s
        while (left := deadline - time.monotonic()) > 0:
            try:
                message = self.client.get_iopub_msg(timeout=left)
            except queue.Empty:
                break
            if message["parent_header"].get("msg_id") != request_id:
                continue
            content = message["content"]
            if message["msg_type"] == "status" and content["execution_state"] == "idle":
                return messages
            messages.append({"type": message["msg_type"], **content})
        raise TimeoutError(f"the cell did not end in {within_s:g} s: {code[:200]}")

    def kill(self) -> None:
        """Kill the kernel as the system's out-of-memory killer does."""
        assert self.manager.provisioner is not None
        os.kill(self.manager.provisioner.pid, signal.SIGKILL)

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        self.manager.cleanup_resources()
