"""The child half of torch's extensions: builds are kept, one folder for each extension."""

from __future__ import annotations

import fcntl
import hashlib
import importlib
import inspect
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from triton_magics.config import cache_dir
from triton_magics.languages.torch.child.runtime import TorchRuntime

FOLDER = "TORCH_EXTENSIONS_DIR"
NO_NVCC = (
    "nvcc, which load_inline calls, is missing: install the CUDA toolkit, or write the kernels as "
    "a version of type cuda"
)


class TorchCudaRuntime(TorchRuntime):
    """Modules that build an extension when they are imported."""

    title = "torch_cuda"
    builds_on_load = True

    def missing_tool(self) -> str | None:
        """Return that there is no nvcc."""
        home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH") or "/usr/local/cuda"
        has_nvcc = shutil.which("nvcc") or Path(home, "bin", "nvcc").exists()
        return None if has_nvcc else NO_NVCC

    def refused_here(self) -> str | None:
        """Return that a CUDA extension needs a GPU, and nvcc."""
        if self._device == "cpu":
            return "an extension in CUDA runs on a GPU only"
        return self.missing_tool()

    def limits_of_verdict(self, source: str, *, on_cpu: bool) -> tuple[str, ...]:
        """Return that the kernels of an extension can't be observed."""
        return ("who computes the output: launches of an extension are not seen",)

    def load(self, name: str, path: Path) -> ModuleType:
        """Import the module; what it builds is kept for later workers."""
        with _build_folder(path.read_bytes()), _shared_inline_builds():
            return super().load(name, path)


@contextmanager
def _shared_inline_builds() -> Iterator[None]:
    """Give each `load_inline` the folder of its arguments.

    So a change of the version's Python rebuilds nothing.
    """
    extensions = importlib.import_module("torch.utils.cpp_extension")
    original = extensions.load_inline
    signature = inspect.signature(original)

    @wraps(original)
    def load_inline(*args: Any, **kwargs: Any) -> Any:
        arguments = sorted(signature.bind(*args, **kwargs).arguments.items())
        with _build_folder(repr((torch.__version__, sys.version, arguments)).encode()):
            return original(*args, **kwargs)

    extensions.load_inline = load_inline  # type: ignore[attr-defined]
    try:
        yield
    finally:
        extensions.load_inline = original  # type: ignore[attr-defined]


def _extensions() -> Path:
    """Return the folder that all workers share; in a sandbox, this worker's own."""
    shared = cache_dir() / "extensions"
    try:
        shared.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=shared):
            return shared
    except OSError:
        return Path(tempfile.gettempdir(), "extensions")


@contextmanager
def _build_folder(source: bytes) -> Iterator[None]:
    """Build in a folder of this content, one process at a time.

    A killed build leaves a lock file of torch's, for which the next one would wait for ever.
    """
    folder = _extensions() / hashlib.sha256(source).hexdigest()[:24]
    folder.mkdir(parents=True, exist_ok=True)
    before = os.environ.get(FOLDER)
    with (folder / "one_build.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # the kernel frees it when the process ends
        for left in folder.rglob("lock"):
            left.unlink(missing_ok=True)
        os.environ[FOLDER] = str(folder)
        try:
            yield
        finally:
            os.environ.pop(FOLDER)
            if before is not None:
                os.environ[FOLDER] = before
