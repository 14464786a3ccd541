"""Triton's child half: passes each call of the harness to the module that implements it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import triton
from triton.runtime.jit import KernelInterface

from triton_magics.io_contract import IOContract, LaunchConfig
from triton_magics.languages import compile_cache
from triton_magics.languages.contract_launch import make_launcher
from triton_magics.languages.kernel_compiler import CodeRequest, KernelRecord, Target
from triton_magics.languages.kernel_runtime import (
    BoundsCheck,
    GuardedTensor,
    KernelRuntime,
    LanguageFacts,
    LaunchContext,
    Launches,
    RequestedLaunch,
    SourcePlace,
    Symptom,
    WarmUp,
)
from triton_magics.languages.triton.child import (
    block_size,
    bounds,
    compile_errors,
    error_hints,
    kernel_records,
    launchers,
    launches,
    requested_launches,
    source_hints,
    triton_process,
    warm_up_kernel,
)
from triton_magics.languages.triton.child.stub_driver import StubDriver
from triton_magics.model import Cause, KernelError


class TritonRuntime(KernelRuntime):
    """Kernels that Triton compiles, or interprets where there is no GPU."""

    title = "Triton"
    package = "triton"
    # The interpreter replaces functions of the language on a kernel's first call.
    self_changing_modules = ("triton.language", "triton.runtime.interpreter")
    compiles_ahead = True

    def preload(self) -> None:
        """Import what a compilation imports."""
        triton_process.preload()

    def prepare_process(self, mode: str) -> None:
        """Replace the driver where there is no GPU, and speed the interpreter up."""
        triton_process.prepare_process(mode)

    def facts(self) -> LanguageFacts:
        """Return Triton's version and the settings that decide precision."""
        return triton_process.facts()

    def warm_up(self) -> WarmUp:
        """Return a softmax."""
        return WarmUp("softmax", Path(warm_up_kernel.__file__), "triton_softmax")

    def refused_on_cpu(self, dtype: str) -> str | None:
        """Return why the interpreter can't compute in a dtype."""
        if dtype == "bfloat16":
            return "Triton's interpreter computes bfloat16 wrongly and reports no error"
        return None

    def explain_symptom(self, symptom: Symptom, source: str) -> Cause | None:
        """Return what in the source explains wrong values."""
        return source_hints.explain_symptom(symptom, source)

    # ----------------------------------------------------------------------------- one version

    def observe_launches(
        self, *, suppress: bool = False, during: LaunchContext = nullcontext
    ) -> AbstractContextManager[Launches]:
        """Record the launches of JIT functions and of compiled kernels."""
        return launches.observe_launches(suppress=suppress, during=during)

    def list_launches(self) -> AbstractContextManager[list[RequestedLaunch]]:
        """List the launches of JIT functions, with their arguments."""
        return requested_launches.list_launches()

    def launch_by_contract(self, kernel: Any, contract: IOContract) -> Callable[..., Any] | None:
        """Return a launcher of a JIT function; num_warps and num_stages are the contract's."""
        if not isinstance(kernel, KernelInterface):
            return None

        def launch(arguments: dict[str, Any], config: LaunchConfig) -> None:
            options = {"num_warps": config.num_warps, "num_stages": config.num_stages}
            stated = {name: value for name, value in options.items() if value is not None}
            grid = (config.grid.x, config.grid.y, config.grid.z)
            kernel[grid](**arguments, **stated)

        return make_launcher(contract, "triton", kernel.arg_names, launch)

    def has_autotuner(self, module: ModuleType) -> bool:
        """Return True where a kernel has `@triton.autotune`."""
        return launches.has_autotuner(module)

    def check_bounds(
        self,
        path: str,
        guards: Callable[[], Sequence[GuardedTensor]],
        *,
        limit_s: float | None = None,
    ) -> AbstractContextManager[BoundsCheck]:
        """Compare each load and store of the interpreter with the bounds of the tensors."""
        return bounds.check_bounds(path, guards, limit_s=limit_s)

    # ------------------------------------------------------------------------------ its errors

    def error_place(self, error: BaseException, module: ModuleType | None) -> SourcePlace | None:
        """Return the place of a CompilationError."""
        return compile_errors.compile_place(error, module)

    def error_message(self, chain: Sequence[BaseException], index: int) -> str | None:
        """Return the compiler's message."""
        return compile_errors.compile_message(chain, index)

    def hint_for(self, message: str) -> str | None:
        """Return one line of advice for a message of Triton or CUDA."""
        return error_hints.hint_for(message)

    def corrected_line(self, message: str, code: str) -> str | None:
        """Return the line with the name that a misspelt one was meant to be."""
        return error_hints.corrected_line(message, code)

    def is_compile_error(self, error: KernelError) -> bool:
        """Return True where Triton's compiler or ptxas refused the version."""
        return compile_errors.is_compile_error(error)

    def is_launch_error(self, message: str) -> bool:
        """Return True where no GPU would take the launch."""
        return error_hints.is_launch_mistake(message)

    # ------------------------------------------------------------------------------- compiling

    def compile_cache(
        self, sources: Sequence[str], *, is_warm_up: bool = False
    ) -> AbstractContextManager[None]:
        """Share the entries of Triton's cache with other workers."""
        return compile_cache.compile_cache(sources, is_warm_up=is_warm_up)

    def missing_launchers(self) -> Sequence[Callable[[], None]]:
        """Return the builds of launchers that are wanted."""
        return launchers.missing()

    def claim_launchers(self) -> bool:
        """Return True if there is a launcher to build by gcc."""
        return launchers.claim()

    def build_launchers(self) -> None:
        """Build them, where Triton has one for each signature."""
        launchers.build_compiled()

    def compile_key(self) -> Mapping[str, str]:
        """Return Triton's own environment variables."""
        return compile_cache.settings()

    def is_compiled(self, key: str) -> bool:
        """Return True where the cache has a mark of that key."""
        return compile_cache.is_marked(key)

    def mark_compiled(self, key: str) -> None:
        """Leave a mark in the cache."""
        compile_cache.mark(key)

    @contextmanager
    def compile_only(self, *, brief: bool = False) -> Iterator[None]:
        """Make each launch, and each configuration of an autotuner, compile and do no more.

        If it is brief, a kernel with a large block raises CompilesLong.
        """
        with launches.compile_only(), block_size.refuse_large() if brief else nullcontext():
            yield

    def compile_into(self, folder: str) -> AbstractContextManager[None]:
        """Use another folder as Triton's cache."""
        return compile_cache.moved(folder)

    def stop_at_compilation(self) -> AbstractContextManager[None]:
        """Make launches do nothing, and stop at `kernel.warmup(...)`."""
        return launches.stop_at_compilation()

    def use_target(self, target: Target) -> None:
        """Activate a driver that launches nothing."""
        triton.runtime.driver.set_active(StubDriver(target))

    def cross_compile(
        self, target: Target
    ) -> AbstractContextManager[Callable[[CodeRequest], KernelRecord]]:
        """Compile for another GPU, and record what would be launched there."""
        return kernel_records.cross_compiling(target)

    def record_kernels(self, code: CodeRequest) -> KernelRecord:
        """Return a record of JIT functions that run on this GPU."""
        return kernel_records.GpuRecord(code)

    def on_compile(self, callback: Callable[[], None]) -> None:
        """Call back by Triton's compilation listener; the newest callback replaces others."""

        def listener(**kwargs: object) -> None:
            callback()

        triton.knobs.compilation.listener = listener
