"""Who is timed: torch, the versions, what they are compared against, and torch again."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import torch

from triton_magics import ops
from triton_magics.engine.protocol import BenchJob
from triton_magics.worker.load import Loaded, UserFault
from triton_magics.worker.verdicts import AGAIN

COMPILE = "torch.compile"


@dataclass(frozen=True)
class Provider:
    """Who is timed."""

    name: str
    call: Callable[..., Any]
    version: Loaded | None = None


def providers(job: BenchJob, op: ops.Op, versions: tuple[Loaded, ...]) -> tuple[Provider, ...]:
    """torch, the versions, what they are compared against, and torch again as the control."""
    torch_itself = Provider("torch", op.reference)
    own = [Provider(v.name, v.call, v) for v in versions]
    others = [Provider(name, rival(name, op)) for name in job.against]
    return (torch_itself, *own, *others, Provider(AGAIN, op.reference))


def rival(name: str, op: ops.Op) -> Callable[..., Any]:
    """`torch.compile`, or `module:function` importable here.

    Raises:
        UserFault: neither.
    """
    if name == COMPILE:
        # One kernel needs no pool of compilers, whose processes would outlive the call.
        inductor: Any = importlib.import_module("torch._inductor.config")
        inductor.compile_threads = 1
        compiled: Callable[..., Any] = torch.compile(op.reference)
        return compiled
    module, _, function = name.partition(":")
    try:
        found: Callable[..., Any] = attrgetter(function)(importlib.import_module(module))
        if not callable(found):
            raise TypeError(f"{function} is no function")
    except Exception as error:  # whatever the module raises when it is imported
        raise UserFault(
            f"--against {name}: {type(error).__name__}: {error}; write torch.compile, a version, "
            "or module:function that can be imported from here"
        ) from error
    return found


def load_compiler() -> None:
    """Imports what torch.compile needs: seconds, which nobody should wait for the GPU for."""
    torch.compile(torch.neg, backend="aot_eager")(torch.ones(1))
    importlib.import_module("torch._inductor.compile_fx")
    importlib.import_module("torch._inductor.codegen.triton")
