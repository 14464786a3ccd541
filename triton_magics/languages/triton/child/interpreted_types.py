"""Triton's interpreter without types that are made again and again.

Each operation on a block makes several types, each with a shape that is checked, and tensors whose
shapes are built from them: half of the time of a small program. All of it follows from the type
of an element and the sizes, so it is made once for these. Each patch calls the original function
first and keeps what that has made.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from triton.language import core, semantic
from triton.runtime import interpreter

_MANY = 4096  # types of blocks; more are forgotten
_OF_TENSOR = "_attributes_of_tensor"
_DERIVED = "_derived_types"  # those with other elements by their names, and its own of the builder
_OWN_NAMES = ("handle", "type", "dtype")  # attributes of a tensor; the others follow from its type


def remember_types() -> None:
    """Patch the types of the language, and what the interpreter does for each launch; once."""
    if hasattr(core.block_type.__init__, "original"):
        return
    for owner, name, make in (
        (core.block_type, "__init__", _block_type_init),
        (core.block_type, "with_element_ty", _with_element_type),
        (core.block_type, "to_ir", _to_ir),
        (core.tensor, "__init__", _tensor_init),
        (semantic.TritonSemantic, "cast", _cast),
        (semantic.TritonSemantic, "computation_type_impl", _computation_type),
        (semantic.TritonSemantic, "broadcast_impl_value", _broadcast),
        (interpreter, "_patch_builtin", _patch_builtin),
    ):
        if (original := getattr(owner, name, None)) is not None:
            quick = make(original)
            quick.original = original
            setattr(owner, name, quick)


def _block_type_init(original: Callable[..., None]) -> Any:
    """Return an `__init__` that takes shape, size and name from an equal type."""
    types: dict[tuple[Any, ...], dict[str, Any]] = {}

    def init(self: Any, element_ty: Any, shape: Any) -> None:
        key = _key(element_ty, shape) if type(self) is core.block_type else None
        attributes = types.get(key) if key else None
        if attributes is not None:
            self.__dict__.update(attributes)
            self.element_ty = element_ty
            return
        original(self, element_ty, shape)
        if key:
            if len(types) >= _MANY:
                types.clear()
            types[key] = {**vars(self), _DERIVED: {}, _OF_TENSOR: {}}
            self.__dict__.update(types[key])

    return init


def _key(element: Any, shape: Any) -> tuple[Any, ...] | None:
    """Return what a block type follows from; None where it is not told by names and integers."""
    sizes = getattr(shape, "values", shape)
    key = [_name(element)]
    for size in sizes:
        number = size.value if type(size) is core.constexpr else size
        if type(number) is not int:
            return None
        key.append(number)
    return tuple(key) if key[0] is not None else None


def _name(element: Any) -> Any:
    """Return what tells an element's type from others; None for a kind that is not known here."""
    if type(element) is core.dtype:
        return element.name
    if type(element) is core.pointer_type and type(element.element_ty) is core.dtype:
        return (element.name, element.address_space, element.const)
    return None


def _with_element_type(original: Callable[..., Any]) -> Any:
    """Return a `with_element_ty` that gives the same type for the same element."""

    def with_element_ty(self: Any, scalar_ty: Any) -> Any:
        derived = vars(self).get(_DERIVED)
        if derived is None or type(scalar_ty) is not core.dtype:
            return original(self, scalar_ty)
        name = scalar_ty.name
        if name not in derived:
            derived[name] = original(self, scalar_ty)
        return derived[name]

    return with_element_ty


def _to_ir(original: Callable[..., Any]) -> Any:
    """Return a `to_ir` that makes one type for equal ones; the interpreter's are Triton's own."""

    def to_ir(self: Any, builder: Any) -> Any:
        derived = vars(self).get(_DERIVED)
        if derived is None or builder is not interpreter.interpreter_builder:
            return original(self, builder)
        if None not in derived:
            derived[None] = original(self, builder)
        return derived[None]

    return to_ir


def _cast(original: Callable[..., Any]) -> Any:
    """Return a `cast` that returns at once where the type is the same."""

    def cast(self: Any, input: Any, dst_ty: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: A002
        if input.type.scalar is dst_ty.scalar and not args and not kwargs:
            return input
        return original(self, input, dst_ty, *args, **kwargs)

    return cast


def _computation_type(original: Callable[..., Any]) -> Any:
    """Return a `computation_type_impl` that works a result out once for types of these names."""
    results: dict[tuple[Any, ...], Any] = {}

    def computation_type_impl(
        self: Any, a_ty: Any, a_is_scalar: bool, b_ty: Any, *flags: bool
    ) -> Any:
        key = a_ty.name, a_is_scalar, b_ty.name, *flags
        if key not in results:
            results[key] = original(self, a_ty, a_is_scalar, b_ty, *flags)
        return results[key]

    return computation_type_impl


def _tensor_init(original: Callable[..., None]) -> Any:
    """Return an `__init__` that takes from the type what follows from it."""
    kinds = {core.dtype, core.pointer_type, core.block_type}

    def init(self: Any, handle: Any, type: Any) -> None:  # noqa: A002 (Triton's name)
        attributes = vars(type).get(_OF_TENSOR)
        if not attributes:
            original(self, handle, type)
            if type.__class__ in kinds:
                own = {name: value for name, value in vars(self).items() if name not in _OWN_NAMES}
                vars(type).setdefault(_OF_TENSOR, {}).update(own)
            return
        self.__dict__.update(attributes)
        self.handle, self.type, self.dtype = handle, type, type.scalar

    return init


def _broadcast(original: Callable[..., Any]) -> Any:
    """Return a `broadcast_impl_value` that leaves blocks of the same shape alone."""

    def broadcast_impl_value(self: Any, lhs: Any, rhs: Any) -> Any:
        if type(lhs.type) is core.block_type and type(rhs.type) is core.block_type:
            left, right = lhs.type.shape, rhs.type.shape
            if left is right or getattr(left, "values", left) == getattr(right, "values", right):
                return lhs, rhs
        return original(self, lhs, rhs)

    return broadcast_impl_value


def _patch_builtin(_original: Callable[..., None]) -> Any:
    """Return a `_patch_builtin` that looks for a module's functions once, not at each launch."""
    names: dict[int, tuple[int, list[str]]] = {}
    bound: dict[Any, Any] = {}

    def patch_builtin(pkg: Any, _builder: Any, scope: Any) -> None:
        size, own = names.get(id(pkg), (0, []))
        if size != len(vars(pkg)):
            own = [name for name, member in inspect.getmembers(pkg) if _is_builtin(member)]
            names[id(pkg)] = len(vars(pkg)), own
        for name in own:
            member = getattr(pkg, name)
            if core.is_builtin(member):  # not where a launch around this one has patched it
                if member not in bound:
                    bound[member] = _bind_semantic(member)
                scope.set_attr(pkg, name, bound[member])

    return patch_builtin


def _is_builtin(member: Any) -> bool:
    return core.is_builtin(member) or hasattr(member, "builtin")


def _bind_semantic(builtin: Any) -> Any:
    """Return a function of the language as a kernel calls it in the interpreter."""
    is_checked = getattr(builtin, "__code__", None) is _CHECK  # only that `_semantic` is given
    function = builtin.__wrapped__ if is_checked else builtin

    def call(*args: Any, **kwargs: Any) -> Any:
        kwargs["_semantic"] = interpreter.interpreter_semantic
        return function(*args, **kwargs)

    call.builtin = builtin  # type: ignore[attr-defined]
    return call


_CHECK = core.builtin(lambda: None).__code__
