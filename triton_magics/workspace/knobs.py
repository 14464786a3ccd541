"""What of a version's source can be turned, and the source with it turned. Pure.

Three things can: a constant at module level; a literal argument of a kernel's launch, with
`num_warps` and the like also where they are not written; the configurations of
`@triton.autotune`, in whose place one stands then. All else of the source stays, byte for byte.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from triton_magics.errors import BadValue, UnknownName, did_you_mean
from triton_magics.model.sweep import Setting
from triton_magics.workspace.source import parse

OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
DEFAULTS: Mapping[str, Setting] = {"num_warps": 4, "num_stages": 3, "num_ctas": 1}
"""Of an NVIDIA GPU, where a launch does not say."""
_KERNEL_DECORATORS = ("jit", "autotune", "heuristics")


@dataclass(frozen=True)
class Edit:
    """Bytes of the source to be replaced; none: text to be put in."""

    start: int
    end: int
    before: str = ""

    def text(self, value: Setting) -> str:
        """What goes in."""
        return f"{self.before}{value!r}"


@dataclass(frozen=True)
class Knob:
    """Something that can be turned.

    Attributes:
        name: BLOCK_SIZE, num_warps.
        value: what is written there; None where it is not written, or not as a literal.
        edits: where its value stands; none for a part of a configuration.
        written: whether it is there at all.
    """

    name: str
    value: Setting | None
    edits: tuple[Edit, ...] = ()
    written: bool = True


@dataclass(frozen=True)
class Tuned:
    """The configurations of an `@triton.autotune`: where they stand, what the first one says."""

    start: int
    end: int
    constructor: str
    constants: Mapping[str, Setting | None]
    options: Mapping[str, Setting | None]

    def text(self, settings: Mapping[str, Setting]) -> str:
        """One configuration in their place: the first one, with these settings.

        Raises:
            BadValue: one of its constants is computed, and not among the settings.
        """
        known = {**self.constants, **{k: v for k, v in settings.items() if k in self.constants}}
        if missing := [name for name, value in known.items() if value is None]:
            raise BadValue(
                f"the configurations of @triton.autotune compute {missing[0]}: name its values "
                f"too, {missing[0]}=..."
            )
        chosen = {**self.options, **{k: v for k, v in settings.items() if k in OPTIONS}}
        options = "".join(f", {k}={v!r}" for k, v in chosen.items() if v is not None)
        return f"[{self.constructor}({known!r}{options})]"


@dataclass
class Source:
    """A version's source, read once."""

    text: str
    tree: ast.Module = field(init=False)

    def __post_init__(self) -> None:
        """Read it.

        Raises:
            BadKernelSource: it is not Python.
        """
        self.tree = parse(self.text)

    @cached_property
    def _bytes(self) -> bytes:
        return self.text.encode()

    @cached_property
    def _lines(self) -> list[int]:
        """Where each line begins, in bytes."""
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

    # ------------------------------------------------------------------------------- what is there

    @cached_property
    def knobs(self) -> dict[str, Knob]:
        """Everything that can be turned, by name: constants first, then launches, then tuning."""
        found = {**self._options(), **self._tuned_knobs(), **self._arguments(), **self._constants()}
        order = {**self._constants(), **self._arguments(), **self._tuned_knobs(), **found}
        return {name: found[name] for name in order}

    def _constants(self) -> dict[str, Knob]:
        """Literals at module level, assigned once."""
        found: dict[str, list[ast.expr]] = {}
        for name, value in _assigned(self.tree.body):
            found.setdefault(name, []).append(value)
        return {
            name: Knob(name, literal(_inner(values[0])), (Edit(*self._span(_inner(values[0]))),))
            for name, values in found.items()
            if len(values) == 1 and literal(_inner(values[0])) is not None
        }

    @cached_property
    def _launches(self) -> list[ast.Call]:
        """`kernel[grid](...)` of the module's own kernels that do not tune themselves."""
        plain = self._kernels - set(self._tuners)
        calls = (n for n in ast.walk(self.tree) if isinstance(n, ast.Call))
        return [c for c in calls if _launched(c) in plain]

    @cached_property
    def _kernels(self) -> set[str]:
        return {
            n.name
            for n in ast.walk(self.tree)
            if isinstance(n, ast.FunctionDef)
            and any(_last_name(d) in _KERNEL_DECORATORS for d in n.decorator_list)
        }

    def _arguments(self) -> dict[str, Knob]:
        """Literal keyword arguments of launches."""
        found: dict[str, list[ast.expr]] = {}
        for call in self._launches:
            for word in call.keywords:
                if word.arg and word.arg not in OPTIONS and literal(word.value) is not None:
                    found.setdefault(word.arg, []).append(word.value)
        return {
            name: Knob(name, literal(values[0]), tuple(Edit(*self._span(v)) for v in values))
            for name, values in found.items()
        }

    def _options(self) -> dict[str, Knob]:
        """`num_warps` and the like at every launch, written there or not."""
        if not self._launches:
            return {}
        return {name: self._option(name) for name in OPTIONS}

    def _option(self, name: str) -> Knob:
        given = [
            (call, next((w.value for w in call.keywords if w.arg == name), None))
            for call in self._launches
        ]
        edits = tuple(
            Edit(*self._span(value)) if value else self._appended(call, name)
            for call, value in given
        )
        values = {literal(value) if value else None for _, value in given}
        written = any(value is not None for _, value in given)
        return Knob(name, values.pop() if len(values) == 1 else None, edits, written)

    def _appended(self, call: ast.Call, name: str) -> Edit:
        """Behind the last argument of a launch."""
        ends = [self._span(a)[1] for a in (*call.args, *(w.value for w in call.keywords))]
        at = max(ends, default=self._span(call)[1] - 1)
        return Edit(at, at, f", {name}=" if ends else f"{name}=")

    # --------------------------------------------------------------------------------- autotune

    @cached_property
    def _tuners(self) -> dict[str, Tuned]:
        """The configurations of each kernel that tunes itself."""
        found = {}
        functions = (n for n in ast.walk(self.tree) if isinstance(n, ast.FunctionDef))
        for node in functions:
            for tuner in node.decorator_list:
                if isinstance(tuner, ast.Call) and _last_name(tuner) == "autotune":
                    tuned = self._tuned(tuner)
                    if tuned:
                        found[node.name] = tuned
        return found

    def _tuned(self, tuner: ast.Call) -> Tuned | None:
        named = (w.value for w in tuner.keywords if w.arg == "configs")
        configs = next(named, tuner.args[0] if tuner.args else None)
        if configs is None:
            return None
        looked_at: ast.AST = configs
        if isinstance(configs, ast.Name):
            values = dict(_assigned(self.tree.body))
            looked_at = values.get(configs.id, configs)
        first = next((n for n in ast.walk(looked_at) if _is_config(n)), None)
        if not isinstance(first, ast.Call):
            return None
        constants, options = _config(first)
        return Tuned(*self._span(configs), ast.unparse(first.func), constants, options)

    def _tuned_knobs(self) -> dict[str, Knob]:
        found: dict[str, Knob] = {}
        for tuned in self._tuners.values():
            found |= {name: Knob(name, None, written=False) for name in OPTIONS}
            found |= {k: Knob(k, v) for k, v in {**tuned.constants, **tuned.options}.items()}
        return found

    # ------------------------------------------------------------------------------------- turned

    def turned(self, settings: Mapping[str, Setting]) -> str:
        """The source with these settings.

        Raises:
            UnknownName, BadValue: a name that is no knob here, a value of another kind.
        """
        edits: list[tuple[int, int, str]] = []
        for name, value in settings.items():
            knob = self.checked(name, value)
            edits += [(e.start, e.end, e.text(value)) for e in knob.edits]
        own = set(self._constants()) | set(self._arguments())
        for tuned in self._tuners.values():
            named = {k: v for k, v in settings.items() if k not in own}
            if any(k in tuned.constants or k in OPTIONS for k in named):
                edits.append((tuned.start, tuned.end, tuned.text(named)))
        made = self._bytes
        for start, end, text in sorted(edits, reverse=True):
            made = made[:start] + text.encode() + made[end:]
        return made.decode()

    def checked(self, name: str, value: Setting) -> Knob:
        """The knob, if it can have this value.

        Raises:
            UnknownName: no such knob; says where the name stands, and what can be turned.
            BadValue: a value of another kind than what stands there.
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
        known = ", ".join(f"{k.name} ({k.value!r})" if k.value is not None else k.name
                          for k in self.knobs.values())  # fmt: skip
        can = f"what can be: {known}" if known else "nothing in it can be"
        where = next(self._elsewhere(name), None)
        if where:
            return f"{name} can't be turned: {where}; {can}"
        hint = did_you_mean(name, self.knobs)
        return f"this version has no constant {name!r}.{hint} {can[0].upper()}{can[1:]}"

    def _elsewhere(self, name: str) -> Iterator[str]:
        """Where else the name stands, and what to write instead."""
        advice = f"write {name} = ... at the top of the module and use that"
        for node in (n for n in self.tree.body if isinstance(n, ast.FunctionDef)):
            for inner in ast.walk(node):
                if any(assigned == name for assigned, _ in _assigned([inner])):
                    line = getattr(inner, "lineno", node.lineno)
                    yield f"line {line} sets it inside {node.name}, not at module level; {advice}"
        for assigned, value in _assigned(self.tree.body):
            if assigned == name and literal(_inner(value)) is None:
                yield f"line {value.lineno} computes it; {advice}"
            elif assigned == name:
                yield f"line {value.lineno} is one of several that set it"
        words = (w for call in self._launches for w in call.keywords if w.arg == name)
        for value in (word.value for word in words):
            if ast.unparse(value) in self.knobs:
                yield f"the launch takes it from {ast.unparse(value)}: name that"
            yield f"line {value.lineno} computes it at the launch; {advice}"


def _assigned(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, ast.expr]]:
    """`NAME = value` and `NAME: type = value`."""
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
    """256 of `tl.constexpr(256)`."""
    if isinstance(value, ast.Call) and _last_name(value) == "constexpr" and len(value.args) == 1:
        return value.args[0]
    return value


def literal(node: ast.expr) -> Setting | None:
    """The number, text or truth value that is written there; None where it is something else."""
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        sign, node = -1, node.operand
    value = node.value if isinstance(node, ast.Constant) else None
    if isinstance(value, bool | str) and sign == 1:
        return value
    return sign * value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _last_name(node: ast.expr) -> str:
    """`autotune` of `triton.autotune(...)`."""
    if isinstance(node, ast.Call):
        return _last_name(node.func)
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _launched(call: ast.Call) -> str:
    """`kernel` of `kernel[grid](...)`; nothing for any other call."""
    return _last_name(call.func.value) if isinstance(call.func, ast.Subscript) else ""


def _is_config(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _last_name(node) == "Config"


def _config(
    call: ast.Call,
) -> tuple[dict[str, Setting | None], dict[str, Setting | None]]:
    """Constants and options of `triton.Config({...}, num_warps=4)`; None where one is computed."""
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
