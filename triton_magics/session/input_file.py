"""Files of the workspace with inputs of an op, as a job carries them."""

from __future__ import annotations

import base64
import zlib
from pathlib import Path

from triton_magics.errors import BadValue
from triton_magics.execution.job_refs import InputFile

SUFFIXES = (".safetensors", ".npz", ".npy", ".pt", ".pth")
MAX_BYTES = 256 * 2**20


def is_input_file(text: str) -> bool:
    """Return True where a text names a file, not an expression."""
    return text.lower().endswith(SUFFIXES)


def read_input_file(folder: Path, text: str) -> InputFile:
    """Return a file of the workspace.

    Args:
        folder: the workspace. A server reads no file outside it.
        text: path of the file, from that folder on.

    Raises:
        BadValue: it is no such file, lies outside the workspace, or is too large.
    """
    if not is_input_file(text):
        raise BadValue(f"--inputs {text}: write a file that ends in {', '.join(SUFFIXES)}")
    root = folder.resolve()
    path = (root / text).resolve()
    if not path.is_relative_to(root):
        raise BadValue(f"--inputs {text}: it is outside the workspace {root}; copy it there")
    try:
        if path.stat().st_size > MAX_BYTES:
            raise BadValue(f"--inputs {text}: more than {MAX_BYTES >> 20} MiB")
        content = path.read_bytes()
    except OSError as error:
        raise BadValue(f"--inputs {text}: {error.strerror or error}") from error
    return InputFile(name=text, data=base64.b64encode(zlib.compress(content, 1)).decode())
