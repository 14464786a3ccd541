"""Writes wrong kernels: one seeded substitution in a right one.

    python tests/faults/mutate.py drop_mask 3 [--into FOLDER]
    python tests/faults/mutate.py all          (every operator, seeds 0 to 5, each code once)

The operator and the seed decide which of the right kernels that are there, and which place in it.
A mutant's docstring says what it was made from; whether it is wrong at all, `witness.py` finds out:
those without a witness are listed in dropped.json and are no part of the corpus.
"""

from __future__ import annotations

import argparse
import ast
import functools
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

KERNELS = Path(__file__).parent / "kernels"
SEEDS = range(6)
GPU_ALONE = {
    "use_tf32": "the interpreter multiplies in float32 whatever it is told",
    "half_accumulator": "in the interpreter a sum takes on the type of what is added",
}
Found = Iterator[tuple[ast.expr, ast.expr]]


def _called(node: ast.AST, *names: str) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) in names


def _copied(node: Any) -> Any:
    """The same code anew.

    A deep copy would follow what other tools hang on the nodes that all trees share, such as
    `ast.Load()`: IPython's tracebacks leave a `parent` there, and with it a whole module.
    """
    return ast.parse(ast.unparse(node), mode="eval").body


def _without(call: ast.Call, *keywords: str) -> ast.Call:
    made = _copied(call)
    made.keywords = [k for k in made.keywords if k.arg not in keywords]
    return made


def _renamed(call: ast.Call, name: str) -> ast.Call:
    made = _copied(call)
    made.func = ast.parse(name, mode="eval").body
    return made


def _keyword(node: ast.AST, name: str) -> ast.keyword | None:
    keywords = node.keywords if isinstance(node, ast.Call) else []
    return next((k for k in keywords if k.arg == name), None)


def _set(call: ast.Call, name: str, text: str) -> ast.Call:
    made = _copied(call)
    for k in made.keywords:
        if k.arg == name:
            k.value = ast.parse(text, mode="eval").body
    return made


def drop_mask(n: ast.AST) -> Found:
    """A load, store or atomic without its mask."""
    if _called(n, "tl.load", "tl.store", "tl.atomic_add") and _keyword(n, "mask"):
        yield n, _without(n, "mask", "other")


def drop_other(n: ast.AST) -> Found:
    """A masked load without its filling."""
    if _called(n, "tl.load") and _keyword(n, "other"):
        yield n, _without(n, "other")


def alter_other(n: ast.AST) -> Found:
    """A masked load filled with another value."""
    other = _keyword(n, "other") if _called(n, "tl.load") else None
    if other:
        yield n, _set(n, "other", "1.0" if ast.unparse(other.value) == "0.0" else "0.0")


def loosen_comparison(n: ast.AST) -> Found:
    """`<` becomes `<=`, `<=` becomes `<`."""
    if isinstance(n, ast.Compare) and isinstance(n.ops[0], ast.Lt | ast.LtE):
        made = _copied(n)
        made.ops = [ast.LtE() if isinstance(n.ops[0], ast.Lt) else ast.Lt()]
        yield n, made


def floor_division(n: ast.AST) -> Found:
    """`cdiv` rounds down."""
    if _called(n, "triton.cdiv", "tl.cdiv"):
        yield n, ast.BinOp(n.args[0], ast.FloorDiv(), n.args[1])


def shorten_loop(n: ast.AST) -> Found:
    """A loop ends one step early."""
    if _called(n, "range") and len(n.args) == 3:
        made = _copied(n)
        made.args[1] = ast.BinOp(n.args[1], ast.Sub(), n.args[2])
        yield n, made


def shift_block(n: ast.AST) -> Found:
    """A program starts one block too late."""
    if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mult) and _called(n.left, "tl.program_id"):
        yield n, ast.BinOp(ast.BinOp(n.left, ast.Add(), ast.Constant(1)), ast.Mult(), n.right)


def swap_stride(n: ast.AST) -> Found:
    """The stride of another dimension."""
    if isinstance(n, ast.Call) and ast.unparse(n.func).endswith(".stride") and n.args:
        made = _copied(n)
        made.args = [ast.Constant(1 - int(ast.unparse(n.args[0])))]
        yield n, made


def drop_factor(n: ast.AST) -> Found:
    """A product without its second factor."""
    if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mult):
        yield n, n.left


def drop_divisor(n: ast.AST) -> Found:
    """A quotient without its divisor."""
    if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Div):
        yield n, n.left


def drop_cast(n: ast.AST) -> Found:
    """No conversion to float32."""
    if isinstance(n, ast.Call) and ast.unparse(n).endswith(".to(tl.float32)"):
        yield n, n.func.value


def change_constant(n: ast.AST) -> Found:
    """A float is one per cent larger."""
    if isinstance(n, ast.Constant) and isinstance(n.value, float) and n.value != 0:
        yield n, ast.Constant(round(n.value * 1.01, 6))


def drop_maximum(n: ast.AST) -> Found:
    """The maximum is not subtracted."""
    if not isinstance(n, ast.BinOp) or not isinstance(n.op, ast.Sub):
        return
    if any(w in ast.unparse(n.right) for w in ("tl.max(", "largest", "max_ptr", "new")):
        yield n, n.left


def half_accumulator(n: ast.AST) -> Found:
    """Sums are kept in float16."""
    if _called(n, "tl.zeros") and _keyword(n, "dtype"):
        yield n, _set(n, "dtype", "tl.float16")


def use_tf32(n: ast.AST) -> Found:
    """Products keep ten bits."""
    if _called(n, "tl.dot") and _keyword(n, "input_precision"):
        yield n, _set(n, "input_precision", "'tf32'")


def drop_atomic(n: ast.AST) -> Found:
    """A store where programs must add up."""
    if _called(n, "tl.atomic_add"):
        yield n, _renamed(n, "tl.store")


def leave_unset(n: ast.AST) -> Found:
    """A buffer that is added to does not start at zero."""
    if _called(n, "torch.zeros"):
        yield n, _renamed(n, "torch.empty")


def drop_contiguous(n: ast.AST) -> Found:
    """A layout is taken for granted."""
    if isinstance(n, ast.Call) and ast.unparse(n.func).endswith(".contiguous"):
        yield n, n.func.value


OPERATORS: dict[str, Callable[[ast.AST], Found]] = {
    f.__name__: f
    for f in (
        drop_mask, drop_other, alter_other, loosen_comparison, floor_division, shorten_loop,
        shift_block, swap_stride, drop_factor, drop_divisor, drop_cast, change_constant,
        drop_maximum, half_accumulator, use_tf32, drop_atomic, leave_unset, drop_contiguous,
    )
}  # fmt: skip


@functools.cache
def _nodes(source: str) -> list[ast.AST]:
    """Every node of a source; operators change copies."""
    return list(ast.walk(ast.parse(source)))


@functools.cache
def places(source: str, operator: str) -> list[tuple[ast.expr, ast.expr]]:
    """Where an operator could act, in the order of the source."""
    found = [pair for n in _nodes(source) for pair in OPERATORS[operator](n)]
    return sorted(
        found, key=lambda pair: (pair[0].lineno, pair[0].col_offset, pair[0].end_col_offset)
    )


def substituted(source: str, node: ast.expr, made: ast.expr) -> str:
    """The source with one expression replaced; the rest stays as it is written."""
    lines = source.splitlines(keepends=True)
    first, last = lines[node.lineno - 1], lines[node.end_lineno - 1]
    text = ast.unparse(ast.fix_missing_locations(made))
    if isinstance(made, ast.BinOp):
        text = f"({text})"
    head, tail = (
        first.encode()[: node.col_offset].decode(),
        last.encode()[node.end_col_offset :].decode(),
    )
    return "".join([*lines[: node.lineno - 1], head + text + tail, *lines[node.end_lineno :]])


def mutant(operator: str, seed: int) -> tuple[str, str]:
    """A name and a source."""
    draw = random.Random(f"{operator} {seed}")
    able = [p for p in sorted((KERNELS / "right").glob("*.py")) if places(p.read_text(), operator)]
    path = draw.choice(able)
    source = path.read_text()
    node, made = draw.choice(places(source, operator))
    changed = substituted(source, node, made)
    told, code = changed.split('"""', 2)[1:]
    op = next(line for line in told.splitlines() if line.startswith("op: "))
    what = OPERATORS[operator].__doc__
    was, now = " ".join(ast.unparse(node).split()), " ".join(ast.unparse(made).split())
    needs = f"needs: gpu, {GPU_ALONE[operator]}\n" if operator in GPU_ALONE else ""
    head = (
        f"{what}\n\n{op}\nstatus: wrong_values\n{needs}from: {path.stem}\n"
        f"operator: {operator}\nseed: {seed}\n"
        f"was: {was[:90]}\nnow: {now[:90]}\n"
    )
    return f"{operator}_{seed}_{path.stem}", f'"""{head}"""{code}'


def every_mutant() -> dict[str, str]:
    """Name -> source, of every operator and seed; where two are the same code, the first."""
    made: dict[str, tuple[str, str]] = {}
    for operator in OPERATORS:
        for seed in SEEDS:
            name, source = mutant(operator, seed)
            made.setdefault(source.split('"""', 2)[2], (name, source))
    return dict(made.values())


def main() -> None:
    """Writes one mutant, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("operator", choices=(*OPERATORS, "all"))
    parser.add_argument("seed", type=int, nargs="?", default=0)
    parser.add_argument("--into", type=Path, default=KERNELS / "wrong")
    given = parser.parse_args()
    every = given.operator == "all"
    for name, source in every_mutant().items() if every else [mutant(given.operator, given.seed)]:
        (given.into / f"{name}.py").write_text(source)
        print(given.into / f"{name}.py")


if __name__ == "__main__":
    main()
