"""Files in the worker's folder for the content of frames that are too large for the socket."""

from __future__ import annotations

import os
import re
import uuid
from pathlib import Path

PAYLOADS = "payloads"
MAX_PAYLOAD_BYTES = 2**30
_NAME = re.compile(r"[0-9a-f]{32}")


def store(content: bytes, scratch: Path) -> str:
    """Write the content of a frame and return its name.

    Raises:
        ValueError: larger than `MAX_PAYLOAD_BYTES`.
        OSError: it can't be written.
    """
    if len(content) > MAX_PAYLOAD_BYTES:
        raise ValueError(f"{len(content)} bytes exceed the cap of {MAX_PAYLOAD_BYTES}")
    folder = scratch / PAYLOADS
    folder.mkdir(mode=0o700, exist_ok=True)
    name = uuid.uuid4().hex
    (folder / name).write_bytes(content)
    return name


def take(name: str, scratch: Path) -> bytes:
    """Read the content of a frame and remove its file.

    Links and pipes, which code under test may have put there, are refused.

    Raises:
        ValueError: an invalid name, or too large.
        OSError: it can't be read.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no payload")
    path = scratch / PAYLOADS / name
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(fd, "rb") as file:
        content = file.read(MAX_PAYLOAD_BYTES + 1) or b""
    path.unlink(missing_ok=True)
    if len(content) > MAX_PAYLOAD_BYTES:
        raise ValueError(f"payload {name} exceeds the cap of {MAX_PAYLOAD_BYTES} bytes")
    return content
