"""A task of GPU MODE as an op: the tensors and numbers of `data` are its inputs."""

from __future__ import annotations

import ast
import inspect
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree

from triton_magics.problems.child.double_mode import in_double
from triton_magics.problems.child.model_op import fork_state

Shape = tuple[int, ...]


class TaskProblem:
    """The reference and the inputs of a task.

    Args:
        files: JSON of its modules by file name, each a list of lines.
        dims: arguments of `generate_input` that an op's shape gives, in this order.
        constants: its other arguments.
    """

    counts_on_meta = False  # its inputs are made on the device that its code names

    def __init__(self, files: str, dims: Sequence[str], constants: Mapping[str, Any]) -> None:
        sources = {name: "\n".join(lines) for name, lines in json.loads(files).items()}
        self.module = _load(sources)
        self.dims, self.constants = tuple(dims), dict(constants)
        self._structures: dict[Any, tuple[list[Any], Any]] = {}
        self.input_names = ()
        self.reference = self._make_reference()

    def make_inputs(
        self, shape: Shape, dtype: torch.dtype, device: torch.device, generator: torch.Generator
    ) -> tuple[Any, ...]:
        """Return the tensors and numbers of `data` for a shape and seed, in order."""
        if torch.device(device).type == "meta":
            raise NotImplementedError("a task makes no meta tensors")
        seed = generator.initial_seed() % 2**31
        arguments = {**self.constants, **dict(zip(self.dims, shape, strict=False)), "seed": seed}
        function: Callable[..., Any] = self.module.generate_input
        names = inspect.signature(function).parameters
        with fork_state(seed, device, torch.float32), EmptyIsZero():
            data = function(**{k: v for k, v in arguments.items() if k in names})
        leaves, spec = _pytree.tree_flatten(data)
        inputs = tuple(x for x in leaves if _is_input(x))
        self._structures[_key(inputs)] = (leaves, spec)
        return inputs

    def _make_reference(self) -> Any:
        def reference(*inputs: Any) -> Any:
            leaves, spec = self._structures[_key(inputs)]
            rest = iter(inputs)
            own = [next(rest) if _is_input(x) else x for x in leaves]
            with in_double(inputs):
                output = self.module.ref_kernel(_pytree.tree_unflatten(own, spec))
            if isinstance(output, torch.Tensor):
                return output
            return tuple(t for t in _pytree.tree_leaves(output) if isinstance(t, torch.Tensor))

        reference.problem = self  # type: ignore[attr-defined]
        return reference


class EmptyIsZero(TorchFunctionMode):
    """Fill the buffers of `torch.empty`, so that equal seeds give equal inputs."""

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call the function, and fill what it leaves uninitialized."""
        result = function(*args, **(kwargs or {}))
        if getattr(function, "__name__", "") in ("empty", "empty_like", "new_empty"):
            result.zero_()
        return result


def _is_input(x: Any) -> bool:
    return isinstance(x, (torch.Tensor, int, float))


def _key(inputs: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(tuple(x.shape) if isinstance(x, torch.Tensor) else type(x) for x in inputs)


def _load(sources: Mapping[str, str]) -> ModuleType:
    """Run the modules of a task, which import each other by name; return `reference`."""
    modules = {name.removesuffix(".py"): source for name, source in sources.items()}
    with _importable(modules):
        return __import__("reference")


@contextmanager
def _importable(modules: Mapping[str, str]) -> Iterator[None]:
    """Make these modules importable while the block runs, in place of others of their names."""
    before = {name: sys.modules.pop(name, None) for name in modules}
    finder = _Finder(modules)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name, module in before.items():
            sys.modules.pop(name, None)
            if module is not None:
                sys.modules[name] = module


class _Finder:
    """Find the modules of a task by name, and run their sources."""

    def __init__(self, modules: Mapping[str, str]) -> None:
        self.modules = modules

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return the specification of a module of the task; None for any other."""
        from importlib.machinery import ModuleSpec

        return ModuleSpec(name, self) if name in self.modules else None  # type: ignore[arg-type]

    def create_module(self, spec: Any) -> None:
        """Use Python's own module type."""

    def exec_module(self, module: ModuleType) -> None:
        """Run a module's source; without a GPU, `cuda` in it is the CPU."""
        tree = ast.parse(self.modules[module.__name__], filename=f"{module.__name__}.py")
        if not torch.cuda.is_available():
            tree = _OnCpu().visit(tree)
        exec(compile(tree, f"{module.__name__}.py", "exec"), vars(module))  # noqa: S102 (a worker)


class _OnCpu(ast.NodeTransformer):
    """Replace the text `cuda` by `cpu`."""

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        if node.value in ("cuda", "cuda:0"):
            return ast.copy_location(ast.Constant("cpu"), node)
        return node
