"""CUDA C++'s child half: passes each call of the harness to the module that implements it."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from triton_magics.io_contract import IOContract, LaunchConfig
from triton_magics.languages import compile_cache
from triton_magics.languages.contract_launch import make_launcher
from triton_magics.languages.cuda.child import gpu_driver, launches, nvrtc_compiler
from triton_magics.languages.cuda.child.error_hints import find_hint, is_launch_fault
from triton_magics.languages.cuda.child.kernel_handle import KernelHandle, cdiv, ctype
from triton_magics.languages.cuda.child.nvrtc_compiler import CompileError, CudaSource
from triton_magics.languages.cuda.cpp_source import (
    find_defines,
    find_kernels,
    read_number,
    read_options,
    read_section,
)
from triton_magics.languages.kernel_compiler import CodeRequest, KernelRecord, Target
from triton_magics.languages.kernel_runtime import (
    KernelRuntime,
    LanguageFacts,
    LaunchContext,
    Launches,
    RequestedLaunch,
    SourcePlace,
)
from triton_magics.model import KernelError

ONLY_GPU = "CUDA C++ runs on a GPU only"


class CudaRuntime(KernelRuntime):
    """Kernels that NVRTC compiles, and the CUDA driver launches."""

    title = "CUDA C++"
    compiles_ahead = True
    package = "cuda"

    def prepare_process(self, mode: str) -> None:
        """Remember how this process runs kernels."""
        launches.STATE.mode = mode

    def missing_tool(self) -> str | None:
        """Return that NVRTC is missing."""
        return nvrtc_compiler.missing_compiler()

    def refused_here(self) -> str | None:
        """Return that there is no GPU or no compiler, or that the GPU's driver is too old."""
        if launches.STATE.mode != "gpu":
            return ONLY_GPU
        return nvrtc_compiler.missing_compiler() or gpu_driver.old_driver()

    def facts(self) -> LanguageFacts:
        """Return NVRTC's version."""
        number = ".".join(map(str, nvrtc_compiler.version()))
        return LanguageFacts(version=number, cpu=platform.processor() or "CPU")

    def refused_on_cpu(self, dtype: str) -> str | None:
        """Return that nothing runs on the CPU."""
        return ONLY_GPU

    def limits_of_verdict(self, source: str, *, on_cpu: bool) -> tuple[str, ...]:
        """Return what only an interpreter finds, which CUDA C++ has not."""
        if on_cpu:
            return ("the values of its output",)
        return ("races, and the line of an access outside a tensor: --sanitize searches them",)

    # ----------------------------------------------------------------------------- one version

    def load(self, name: str, path: Path) -> ModuleType:
        """Execute the launch section as a module, with a handle for each kernel."""
        text = path.read_text()
        section = read_section(text) or ""
        module = ModuleType(name)
        module.__file__ = str(path)
        source = CudaSource(text, str(path), read_options(section))
        values = {define: read_number(number) for define, number, _ in find_defines(text)}
        handles = {
            kernel.name: KernelHandle(source, kernel, launches.launch)
            for kernel in find_kernels(text).values()
        }
        vars(module).update(torch=torch, ctype=ctype, cdiv=cdiv, **values, **handles)
        sys.modules[name] = module
        try:
            exec(compile(section, str(path), "exec"), vars(module))  # noqa: S102 (the version)
        except BaseException:
            del sys.modules[name]
            raise
        return module

    def launch_by_contract(self, kernel: Any, contract: IOContract) -> Callable[..., Any] | None:
        """Return a launcher of a `__global__` function with the contract's grid and block."""
        if not isinstance(kernel, KernelHandle):
            return None
        parameters = [parameter.name for parameter in kernel.kernel.parameters]

        def launch(arguments: dict[str, Any], config: LaunchConfig) -> None:
            assert config.block is not None
            grid, block = (
                (extents.x, extents.y, extents.z) for extents in (config.grid, config.block)
            )
            run = kernel.configure("", grid, block, config.shared_mem_bytes or 0)
            run(*(arguments[name] for name in parameters))

        return make_launcher(contract, "cuda", parameters, launch)

    def observe_launches(
        self, *, suppress: bool = False, during: LaunchContext = nullcontext
    ) -> AbstractContextManager[Launches]:
        """Record the launches of kernel handles."""
        return launches.observe_launches(suppress=suppress, during=during)

    def list_launches(self) -> AbstractContextManager[list[RequestedLaunch]]:
        """List the launches of kernel handles."""
        return launches.list_launches()

    # ------------------------------------------------------------------------------ its errors

    def error_place(self, error: BaseException, module: ModuleType | None) -> SourcePlace | None:
        """Return the line that NVRTC names."""
        has_line = isinstance(error, CompileError) and error.line is not None
        return SourcePlace(error.line) if has_line else None  # type: ignore[attr-defined]

    def error_message(self, chain: Sequence[BaseException], index: int) -> str | None:
        """Return the compiler's first message, without its log."""
        link = chain[index]
        return link.message if isinstance(link, CompileError) else None

    def hint_for(self, message: str) -> str | None:
        """Return one line of advice for a message of NVRTC, the driver or a launch."""
        return find_hint(message)

    def is_compile_error(self, error: KernelError) -> bool:
        """Return True where NVRTC or ptxas refused the source."""
        return error.kind == CompileError.__name__

    def is_launch_error(self, message: str) -> bool:
        """Return True where no GPU would take the launch."""
        return is_launch_fault(message)

    # ------------------------------------------------------------------------------- compiling

    def compile_cache(
        self, sources: Sequence[str], *, is_warm_up: bool = False
    ) -> AbstractContextManager[None]:
        """Share NVRTC's code with other workers."""
        return compile_cache.compile_cache(sources, is_warm_up=is_warm_up)

    def is_compiled(self, key: str) -> bool:
        """Return True where the cache has a mark of that key."""
        return compile_cache.is_marked(key)

    def mark_compiled(self, key: str) -> None:
        """Leave a mark in the cache."""
        compile_cache.mark(key)

    def compile_into(self, folder: str) -> AbstractContextManager[None]:
        """Use another folder as this process's compile cache."""
        return compile_cache.moved(folder)

    def compile_only(self, *, brief: bool = False) -> AbstractContextManager[None]:
        """Make each launch compile its kernel, and do no more; none of them takes long.

        It compiles for the target of this process, else for its GPU.
        """
        target = launches.STATE.target
        if target is None and launches.STATE.mode == "gpu":
            target = Target(gpu_driver.capability(torch.cuda.current_device()))
        return launches.compile_for(target)  # type: ignore[return-value]

    def stop_at_compilation(self) -> AbstractContextManager[None]:
        """Make launches do nothing."""
        return launches.observe_launches(suppress=True, during=nullcontext)  # type: ignore[return-value]

    def use_target(self, target: Target) -> None:
        """Compile for this GPU, and launch nothing, from now on."""
        launches.STATE.target = target

    def cross_compile(
        self, target: Target
    ) -> AbstractContextManager[Callable[[CodeRequest], KernelRecord]]:
        """Compile for another GPU, and record what would be launched there."""
        return launches.compile_for(target)

    def record_kernels(self, code: CodeRequest) -> KernelRecord:
        """Return a record of the kernels that run on this GPU."""
        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        capability = properties.major * 10 + properties.minor
        return launches.CudaRecord(code, Target(capability, properties.multi_processor_count))
