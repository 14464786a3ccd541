"""The child half of mixed versions: Triton's and CUDA C++'s, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import ModuleType
from typing import Any, ClassVar

import torch
import triton
import triton.language as tl

from triton_magics import languages
from triton_magics.languages.cuda.child import launches as cuda_launches
from triton_magics.languages.cuda.child.inline_kernels import cuda_kernels
from triton_magics.languages.cuda.child.kernel_handle import cdiv, ctype
from triton_magics.languages.kernel_runtime import (
    BoundsCheck,
    GuardedTensor,
    KernelRuntime,
    LaunchContext,
    Launches,
    RequestedLaunch,
    SourcePlace,
)
from triton_magics.model import KernelError


class MultiKernelRuntime(KernelRuntime):
    """Kernels of several languages; torch may do any part of the work."""

    title = "multi-kernel"
    computes_in_torch = True
    names: ClassVar[Mapping[str, Any]] = {
        "torch": torch, "triton": triton, "tl": tl, "cuda_kernels": cuda_kernels,
        "ctype": ctype, "cdiv": cdiv,
    }  # fmt: skip

    def __init__(self) -> None:
        self._triton, self._cuda = languages.runtime("triton"), languages.runtime("cuda")
        self._parts: tuple[KernelRuntime, ...] = (self._triton, self._cuda)

    def prepare_process(self, mode: str) -> None:
        """Prepare CUDA C++; Triton is prepared in every process."""
        self._cuda.prepare_process(mode)

    def refused_on_cpu(self, dtype: str) -> str | None:
        """Return why Triton's interpreter can't compute in a dtype."""
        return self._triton.refused_on_cpu(dtype)

    def limits_of_verdict(self, source: str, *, on_cpu: bool) -> tuple[str, ...]:
        """Return that torch may compute the output."""
        return ("who computes the output",)

    @contextmanager
    def observe_launches(
        self, *, suppress: bool = False, during: LaunchContext = nullcontext
    ) -> Iterator[Launches]:
        """Record the launches of both languages, in their order."""
        with (
            self._triton.observe_launches(suppress=suppress, during=during) as record,
            cuda_launches.observe_launches(suppress=suppress, during=during, record=record),
        ):
            yield record

    @contextmanager
    def list_launches(self) -> Iterator[list[RequestedLaunch]]:
        """List the launches of both languages, Triton's first."""
        requested: list[RequestedLaunch] = []
        with self._triton.list_launches() as one, self._cuda.list_launches() as other:
            yield requested
        requested += [*one, *other]

    def has_autotuner(self, module: ModuleType) -> bool:
        """Return True where a Triton kernel tunes itself."""
        return self._triton.has_autotuner(module)

    def check_bounds(
        self,
        path: str,
        guards: Callable[[], Sequence[GuardedTensor]],
        *,
        limit_s: float | None = None,
    ) -> AbstractContextManager[BoundsCheck]:
        """Compare the accesses of Triton's interpreter with the bounds of the tensors."""
        return self._triton.check_bounds(path, guards, limit_s=limit_s)

    def error_place(self, error: BaseException, module: ModuleType | None) -> SourcePlace | None:
        """Return the place of a compile error of either language."""
        return self._first(lambda part: part.error_place(error, module))

    def error_message(self, chain: Sequence[BaseException], index: int) -> str | None:
        """Return the message of either compiler."""
        return self._first(lambda part: part.error_message(chain, index))

    def hint_for(self, message: str) -> str | None:
        """Return the advice of either language."""
        return self._first(lambda part: part.hint_for(message))

    def is_compile_error(self, error: KernelError) -> bool:
        """Return True where either compiler refused the version."""
        return any(part.is_compile_error(error) for part in self._parts)

    def _first(self, ask: Callable[[KernelRuntime], Any]) -> Any:
        return next((value for part in self._parts if (value := ask(part)) is not None), None)
