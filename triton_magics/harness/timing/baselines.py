"""Providers of a benchmark: torch, the versions, further baselines, and torch as the control."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any

import torch

from triton_magics import exception_text, operators
from triton_magics.execution.job_requests import BenchJob
from triton_magics.harness.load import LoadedVersion, UserFault
from triton_magics.harness.process.device import kernel_runtime
from triton_magics.harness.timing.speed_verdicts import CONTROL
from triton_magics.harness.version_call import BackwardPass, backward_pass
from triton_magics.languages.kernel_runtime import KernelRuntime

TORCH_COMPILE = "torch.compile"
_TF32_ADVICE = "TensorFloat32 tensor cores for float32 matrix multiplication available"


@dataclass(frozen=True)
class Provider:
    """A timed implementation: torch, a version or a further baseline."""

    name: str
    call: Callable[..., Any]
    version: LoadedVersion | None = None

    @property
    def runtime(self) -> KernelRuntime:
        """Return the language of its kernels; the default one for a baseline."""
        return self.version.runtime if self.version else kernel_runtime()


def make_providers(
    job: BenchJob, op: operators.Op, versions: tuple[LoadedVersion, ...]
) -> tuple[Provider, ...]:
    """Return torch, the versions, the baselines of `--against`, and torch again as the control.

    Torch alone has no control: nothing is compared with it.
    """
    if job.backward_only and isinstance(op, operators.BackwardOp):
        return _backward_providers(job, op, versions)
    torch_itself = Provider("torch", op.reference)
    own = [Provider(v.name, v.call, v) for v in versions]
    others = [Provider(name, load_baseline(name, op)) for name in job.against]
    control = [Provider(CONTROL, op.reference)] if own or others else []
    return (torch_itself, *own, *others, *control)


def _backward_providers(
    job: BenchJob, op: operators.BackwardOp, versions: tuple[LoadedVersion, ...]
) -> tuple[Provider, ...]:
    reference = BackwardPass(op.prepare)
    own = [Provider(v.name, backward_pass(v.call), v) for v in versions]
    others = [Provider(name, BackwardPass(_passes(name, op))) for name in job.against]
    control = [Provider(CONTROL, reference)] if own or others else []
    return (Provider("torch", reference), *own, *others, *control)


def _passes(name: str, op: operators.BackwardOp) -> Callable[..., Callable[[], Any]]:
    """Return both passes of a baseline: torch.compile, or a function that computes the op."""
    if name == TORCH_COMPILE:
        return op.compile_passes()
    return partial(op.prepare, function=load_baseline(name, op))


def load_baseline(name: str, op: operators.Op) -> Callable[..., Any]:
    """Load the baseline `torch.compile` or `module:function`.

    Raises:
        UserFault: the name is neither `torch.compile` nor an importable function.
    """
    if name == TORCH_COMPILE:
        # One kernel needs no compile pool; its processes would outlive the call.
        inductor: Any = importlib.import_module("torch._inductor.config")
        inductor.compile_threads = 1
        # The precision is that of all providers: its compiler's advice is nothing to act on.
        warnings.filterwarnings("ignore", message=_TF32_ADVICE, category=UserWarning)
        compiled: Callable[..., Any] = torch.compile(op.reference)
        return compiled
    module, _, function = name.partition(":")
    try:
        baseline: Callable[..., Any] = attrgetter(function)(importlib.import_module(module))
        if not callable(baseline):
            raise TypeError(f"{function} is not a function")
    except BaseException as error:  # exit() too: the code is the user's own
        raise UserFault(
            f"--against {name}: {exception_text.one_line(error)}; use torch.compile, a version or "
            "an importable module:function"
        ) from error
    return baseline


def import_torch_compile() -> None:
    """Import torch.compile's modules, so that these seconds pass outside the GPU lock."""
    torch.compile(torch.neg, backend="aot_eager")(torch.ones(1))
    importlib.import_module("torch._inductor.compile_fx")
    importlib.import_module("torch._inductor.codegen.triton")
