"""Tunable parameters of a version's source, and the source with other values. Pure.

Three kinds: a constant at module level; a literal argument of a kernel's launch, with
`num_warps` and the like also where they are not written; the configurations of
`@triton.autotune`, which one configuration replaces. The rest of the source stays, byte for byte.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from triton_magics.errors import BadValue, UnknownName, did_you_mean
from triton_magics.languages.python_source import parse
from triton_magics.model import Setting

OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
DEFAULTS: Mapping[str, Setting] = {"num_warps": 4, "num_stages": 3, "num_ctas": 1}
"""Of an NVIDIA GPU, where a launch names none."""
_KERNEL_DECORATORS = ("jit", "autotune", "heuristics")


@dataclass(frozen=True)
class Edit:
    """Bytes of the source to replace; an empty range: text to insert."""

    start: int
    end: int
    before: str = ""

    def text(self, value: Setting) -> str:
        """Return the text to insert."""
        return f"{self.before}{value!r}"


@dataclass(frozen=True)
class Knob:
    """A tunable parameter.

    Attributes:
        name: BLOCK_SIZE, num_warps.
        value: in the source; None where it is missing, or no literal.
        edits: places of its value; none for a part of a configuration.
        written: True where the source has it.
    """

    name: str
    value: Setting | None
    edits: tuple[Edit, ...] = ()
    written: bool = True


@dataclass(frozen=True)
class Tuned:
    """The configurations of an `@triton.autotune`: their place, and the first one."""

    start: int
    end: int
    constructor: str
    constants: Mapping[str, Setting | None]
    options: Mapping[str, Setting | None]

    def text(self, settings: Mapping[str, Setting]) -> str:
        """Return one configuration to replace them: the first one, with these settings.

        Raises:
            BadValue: one of its constants is computed, and not among the settings.
        """
        constants = {**self.constants, **{k: v for k, v in settings.items() if k in self.constants}}
        if missing := [name for name, value in constants.items() if value is None]:
            raise BadValue(
                f"the configurations of @triton.autotune compute {missing[0]}: name its values "
                f"too, {missing[0]}=..."
            )
        chosen = {**self.options, **{k: v for k, v in settings.items() if k in OPTIONS}}
        options = "".join(f", {k}={v!r}" for k, v in chosen.items() if v is not None)
        return f"[{self.constructor}({constants!r}{options})]"


@dataclass
class Source:
    """A version's source, parsed once."""

    text: str
    tree: ast.Module = field(init=False)

    def __post_init__(self) -> None:
        """Parse it.

        Raises:
            BadKernelSource: it is not Python.
        """
        self.tree = parse(self.text)

    @cached_property
    def _bytes(self) -> bytes:
        return self.text.encode()

    @cached_property
    def _lines(self) -> list[int]:
        """Return the start of each line, in bytes."""
        starts = [0]
        for line in self._bytes.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        return starts

    def _span(self, node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return (
            self._lines[node.lineno - 1] + node.col_offset,
            self._lines[node.end_lineno - 1] + node.end_col_offset,
        )

    # ------------------------------------------------------------------------------- parameters

    @cached_property
    def knobs(self) -> dict[str, Knob]:
        """Return every parameter by name: constants first, then launches, then tuning."""
        tuned = {**self._keywords(), **self._tuned_knobs()}
        every = {**self._options(), **tuned, **self._arguments(), **self._constants()}
        order = {**self._constants(), **self._arguments(), **self._tuned_knobs(), **every}
        return {name: every[name] for name in order}

    def _constants(self) -> dict[str, Knob]:
        """Return literals at module level, assigned once."""
        assigned: dict[str, list[ast.expr]] = {}
        for name, value in _assignments(self.tree.body):
            assigned.setdefault(name, []).append(value)
        return {
            name: Knob(name, literal(_inner(values[0])), (Edit(*self._span(_inner(values[0]))),))
            for name, values in assigned.items()
            if len(values) == 1 and literal(_inner(values[0])) is not None
        }

    @cached_property
    def _launches(self) -> list[ast.Call]:
        """Return `kernel[grid](...)` of the module's own kernels that do not tune themselves."""
        plain = self._kernels - set(self._tuners)
        calls = (n for n in ast.walk(self.tree) if isinstance(n, ast.Call))
        return [c for c in calls if _kernel_name(c) in plain]

    @cached_property
    def _kernels(self) -> set[str]:
        return {
            n.name
            for n in ast.walk(self.tree)
            if isinstance(n, ast.FunctionDef)
            and any(_last_name(d) in _KERNEL_DECORATORS for d in n.decorator_list)
        }

    def _arguments(self) -> dict[str, Knob]:
        """Return literal keyword arguments of launches."""
        literals: dict[str, list[ast.expr]] = {}
        for call in self._launches:
            for word in call.keywords:
                if word.arg and word.arg not in OPTIONS and literal(word.value) is not None:
                    literals.setdefault(word.arg, []).append(word.value)
        return {
            name: Knob(name, literal(values[0]), tuple(Edit(*self._span(v)) for v in values))
            for name, values in literals.items()
        }

    def _keywords(self) -> dict[str, Knob]:
        """Return keywords in capitals of functions that launch a kernel: `def f(x, ROWS=1)`.

        Others are arguments of the op, as `eps=1e-5` is.
        """
        defaults: dict[str, list[ast.expr]] = {}
        for node in (n for n in self.tree.body if isinstance(n, ast.FunctionDef)):
            inner = list(ast.walk(node))
            if not any(call in inner for call in self._launches):
                continue
            assigned = {name for name, _ in _assignments(inner)}
            for name, value in _defaults(node.args):
                if name.isupper() and name not in assigned and literal(value) is not None:
                    defaults.setdefault(name, []).append(value)
        return {
            name: Knob(name, literal(values[0]), (Edit(*self._span(values[0])),))
            for name, values in defaults.items()
            if len(values) == 1
        }

    def _options(self) -> dict[str, Knob]:
        """Return `num_warps` and the like at every launch, present or not."""
        if not self._launches:
            return {}
        return {name: self._option(name) for name in OPTIONS}

    def _option(self, name: str) -> Knob:
        words = [
            (call, next((w.value for w in call.keywords if w.arg == name), None))
            for call in self._launches
        ]
        edits = tuple(
            Edit(*self._span(value)) if value else self._append(call, name) for call, value in words
        )
        values = {literal(value) if value else None for _, value in words}
        written = any(value is not None for _, value in words)
        return Knob(name, values.pop() if len(values) == 1 else None, edits, written)

    def _append(self, call: ast.Call, name: str) -> Edit:
        """Return an edit behind the last argument of a launch."""
        ends = [self._span(a)[1] for a in (*call.args, *(w.value for w in call.keywords))]
        at = max(ends, default=self._span(call)[1] - 1)
        return Edit(at, at, f", {name}=" if ends else f"{name}=")

    # --------------------------------------------------------------------------------- autotune

    @cached_property
    def _tuners(self) -> dict[str, Tuned]:
        """Return the configurations of each kernel that tunes itself."""
        tuners = {}
        functions = (n for n in ast.walk(self.tree) if isinstance(n, ast.FunctionDef))
        for node in functions:
            for tuner in node.decorator_list:
                if isinstance(tuner, ast.Call) and _last_name(tuner) == "autotune":
                    tuned = self._tuned(tuner)
                    if tuned:
                        tuners[node.name] = tuned
        return tuners

    def _tuned(self, tuner: ast.Call) -> Tuned | None:
        named = (w.value for w in tuner.keywords if w.arg == "configs")
        configs = next(named, tuner.args[0] if tuner.args else None)
        if configs is None:
            return None
        searched: ast.AST = configs
        if isinstance(configs, ast.Name):
            values = dict(_assignments(self.tree.body))
            searched = values.get(configs.id, configs)
        first = next((n for n in ast.walk(searched) if _is_config(n)), None)
        if not isinstance(first, ast.Call):
            return None
        constants, options = _config(first)
        return Tuned(*self._span(configs), ast.unparse(first.func), constants, options)

    def _tuned_knobs(self) -> dict[str, Knob]:
        knobs: dict[str, Knob] = {}
        for tuned in self._tuners.values():
            knobs |= {name: Knob(name, None, written=False) for name in OPTIONS}
            knobs |= {k: Knob(k, v) for k, v in {**tuned.constants, **tuned.options}.items()}
        return knobs

    # ----------------------------------------------------------------------------------- settings

    def current(self, names: Iterable[str]) -> dict[str, Setting]:
        """Return the values that the source runs with; what it does not set is Triton's default."""
        values = {name: self._current(self.knobs[name]) for name in names}
        return {name: value for name, value in values.items() if value is not None}

    def _current(self, knob: Knob) -> Setting | None:
        unset = knob.value is None and not knob.written
        return DEFAULTS.get(knob.name) if unset else knob.value

    def apply(self, settings: Mapping[str, Setting]) -> str:
        """Return the source with these settings.

        Raises:
            UnknownName, BadValue: no such parameter, a value of another kind.
        """
        edits: list[tuple[int, int, str]] = []
        for name, value in settings.items():
            knob = self.check(name, value)
            edits += [(e.start, e.end, e.text(value)) for e in knob.edits]
        own = set(self._constants()) | set(self._arguments())
        for tuned in self._tuners.values():
            named = {k: v for k, v in settings.items() if k not in own}
            if any(k in tuned.constants or k in OPTIONS for k in named):
                edits.append((tuned.start, tuned.end, tuned.text(named)))
        source = self._bytes
        for start, end, text in sorted(edits, reverse=True):
            source = source[:start] + text.encode() + source[end:]
        return source.decode()

    def check(self, name: str, value: Setting) -> Knob:
        """Return the parameter, if it can have this value.

        Raises:
            UnknownName: no such parameter; names its place and the parameters that there are.
            BadValue: a value of another kind than that of the source.
        """
        knob = self.knobs.get(name)
        if knob is None:
            raise UnknownName(self._unknown(name))
        if name in OPTIONS and (type(value) is not int or value < 1):
            raise BadValue(f"{name}={value}: write a whole number from 1")
        kind = type(knob.value)
        fits = kind in (type(value), type(None)) or (kind is float and type(value) is int)
        if not fits:
            raise BadValue(f"{name}={value}: {name} is {knob.value!r} here; write such a value")
        return knob

    def _unknown(self, name: str) -> str:
        names = ", ".join(f"{k.name} ({k.value!r})" if k.value is not None else k.name
                          for k in self.knobs.values())  # fmt: skip
        can = f"tunable: {names}" if names else "it has no tunable parameter"
        where = next(self._elsewhere(name), None)
        if where:
            return f"{name} is not tunable: {where}; {can}"
        hint = did_you_mean(name, self.knobs)
        return f"no tunable parameter {name!r} in this version.{hint} {can[0].upper()}{can[1:]}"

    def _elsewhere(self, name: str) -> Iterator[str]:
        """Yield other places of the name, with the code to write instead."""
        advice = f"write {name} = ... at the top of the module and use that"
        for node in (n for n in self.tree.body if isinstance(n, ast.FunctionDef)):
            for inner in ast.walk(node):
                if any(other == name for other, _ in _assignments([inner])):
                    line = getattr(inner, "lineno", node.lineno)
                    yield f"line {line} sets it inside {node.name}, not at module level; {advice}"
        for other, value in _assignments(self.tree.body):
            if other == name and literal(_inner(value)) is None:
                yield f"line {value.lineno} computes it; {advice}"
            elif other == name:
                yield f"line {value.lineno} is one of several that set it"
        words = (w for call in self._launches for w in call.keywords if w.arg == name)
        for value in (word.value for word in words):
            if ast.unparse(value) in self.knobs:
                yield f"the launch takes it from {ast.unparse(value)}: name that"
            yield f"line {value.lineno} computes it at the launch; {advice}"


def _defaults(arguments: ast.arguments) -> Iterator[tuple[str, ast.expr]]:
    """Yield name and default of each argument that has one."""
    positional = [*arguments.posonlyargs, *arguments.args]
    for argument, value in zip(reversed(positional), reversed(arguments.defaults), strict=False):
        yield argument.arg, value
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if default is not None:
            yield argument.arg, default


def _assignments(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, ast.expr]]:
    """Yield name and value of `NAME = value` and `NAME: type = value`."""
    for node in nodes:
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets = [node.target]
        value = getattr(node, "value", None)
        for target in targets:
            if isinstance(target, ast.Name) and isinstance(value, ast.expr):
                yield target.id, value


def _inner(value: ast.expr) -> ast.expr:
    """Return 256 of `tl.constexpr(256)`."""
    if isinstance(value, ast.Call) and _last_name(value) == "constexpr" and len(value.args) == 1:
        return value.args[0]
    return value


def literal(node: ast.expr) -> Setting | None:
    """Return the literal number, text or truth value; None for any other expression."""
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        sign, node = -1, node.operand
    value = node.value if isinstance(node, ast.Constant) else None
    if isinstance(value, bool | str) and sign == 1:
        return value
    return sign * value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _last_name(node: ast.expr) -> str:
    """Return `autotune` of `triton.autotune(...)`."""
    if isinstance(node, ast.Call):
        return _last_name(node.func)
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _kernel_name(call: ast.Call) -> str:
    """Return `kernel` of `kernel[grid](...)`; empty for any other call."""
    return _last_name(call.func.value) if isinstance(call.func, ast.Subscript) else ""


def _is_config(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _last_name(node) == "Config"


def _config(
    call: ast.Call,
) -> tuple[dict[str, Setting | None], dict[str, Setting | None]]:
    """Return constants and options of a `triton.Config(...)`; None where one is computed."""
    words = {w.arg: w.value for w in call.keywords if w.arg}
    table = call.args[0] if call.args else words.get("kwargs")
    constants: dict[str, Setting | None] = {}
    if isinstance(table, ast.Dict):
        for key, value in zip(table.keys, table.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                constants[key.value] = literal(value)
    options = {name: literal(words[name]) for name in OPTIONS if name in words}
    return constants, options


__all__ = ["OPTIONS", "Knob", "Source", "literal"]
