"""Triton in this process: its facts for a result's environment, and its preparation."""

from __future__ import annotations

import importlib
import os
import warnings
from importlib import metadata

import triton

from triton_magics.languages.kernel_runtime import LanguageFacts
from triton_magics.languages.triton import INTERPRET
from triton_magics.languages.triton.child.interpreted_warm_up import make_warm_up_launchable
from triton_magics.languages.triton.child.interpreter_patches import apply_patches
from triton_magics.languages.triton.child.stub_driver import StubDriver

# Modules that triton imports only when they are first used.
LATE = ("triton.compiler.code_generator", "triton.experimental.gluon")
REMEMBERED = (("triton.runtime.cache", "triton_key"), ("triton.runtime.build", "platform_key"))


def preload() -> None:
    """Import the late modules, and compute what Triton remembers.

    These are the hash of its own sources (0.4 s), and the name of the machine, for which it runs
    the program `file` (0.02 s).
    """
    for name in LATE:
        importlib.import_module(name)
    if os.environ.get(INTERPRET) != "1":
        for module, function in REMEMBERED:
            if compute := getattr(importlib.import_module(module), function, None):
                compute()


def prepare_process(mode: str) -> None:
    """Replace the driver where there is no GPU, and speed the interpreter up where it runs.

    Raises:
        RuntimeError: this triton can't interpret loops with this numpy.
    """
    if mode != "gpu":
        triton.runtime.driver.set_active(StubDriver())
    if mode == "interpreter":
        check_interpreter(triton.__version__, metadata.version("numpy"))
        apply_patches()
        make_warm_up_launchable()
        # NaN and infinities are inputs here, not news.
        warnings.filterwarnings("ignore", category=RuntimeWarning, module="triton|numpy")


def check_interpreter(triton_version: str, numpy_version: str) -> None:
    """Check that this pair can interpret loops: triton 3.6 fails with numpy 2.4 and later.

    Raises:
        RuntimeError: it can't; the message says what to install.
    """
    old_triton = tuple(map(int, triton_version.split(".")[:2])) < (3, 7)
    new_numpy = tuple(map(int, numpy_version.split(".")[:2])) >= (2, 4)
    if old_triton and new_numpy:
        raise RuntimeError(
            f"the interpreter of triton {triton_version} can't run loops with numpy "
            f"{numpy_version}: pip install 'numpy<2.4'"
        )


def facts() -> LanguageFacts:
    """Return Triton's version and the settings that decide precision."""
    dot = triton.knobs.language.fp32_default or "tf32"
    fusion = os.environ.get("TRITON_DEFAULT_FP_FUSION", "default")
    return LanguageFacts(
        version=triton.__version__,
        cpu="CPU (Triton's interpreter)",
        flags=(
            f"tl.dot of float32 {dot} unless it says otherwise",
            f"triton fp fusion {fusion}",
        ),
    )
