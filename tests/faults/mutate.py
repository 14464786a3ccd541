"""Make wrong kernels: one seeded substitution in a right one.

    python tests/faults/mutate.py                 build the mutants of mutants.json
    python tests/faults/mutate.py drop_mask 3     print the mutant of an operator and a seed
    python tests/faults/mutate.py manifest        write mutants.json: every operator, seeds 0 to 5

An operator and a seed choose one of the right kernels, and a place in it. mutants.json lists the
choices, so that a new right kernel changes none of them. The sources are built from it into
kernels/wrong and are not stored. `witness.py` searches an input on which a mutant errs; a mutant
without one is listed in dropped.json and is no part of the corpus.
"""

from __future__ import annotations

import argparse
import ast
import functools
import hashlib
import json
import os
import random
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

KERNELS = Path(__file__).parent / "kernels"
MANIFEST = Path(__file__).parent / "mutants.json"
DROPPED = Path(__file__).parent / "dropped.json"
BUILT = "*_[0-9]_*.py"  # names of mutants; .gitignore has the same pattern
SEEDS = range(6)
GPU_ALONE = {
    "use_tf32": "the interpreter multiplies in float32 for every input_precision",
    "half_accumulator": "in the interpreter a sum takes on the type of what is added",
}
Substitutions = Iterator[tuple[ast.expr, ast.expr]]


def is_call(node: ast.AST, *names: str) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) in names


def copy_node(node: Any) -> Any:
    """Return a copy of a node.

    A deep copy would follow what other tools hang on the nodes that all trees share, such as
    `ast.Load()`: IPython's tracebacks leave a `parent` there, and with it a whole module.
    """
    return ast.parse(ast.unparse(node), mode="eval").body


def drop_keywords(call: ast.Call, *keywords: str) -> ast.Call:
    copied = copy_node(call)
    copied.keywords = [k for k in copied.keywords if k.arg not in keywords]
    return copied


def rename_call(call: ast.Call, name: str) -> ast.Call:
    copied = copy_node(call)
    copied.func = ast.parse(name, mode="eval").body
    return copied


def find_keyword(node: ast.AST, name: str) -> ast.keyword | None:
    keywords = node.keywords if isinstance(node, ast.Call) else []
    return next((k for k in keywords if k.arg == name), None)


def set_keyword(call: ast.Call, name: str, text: str) -> ast.Call:
    copied = copy_node(call)
    for k in copied.keywords:
        if k.arg == name:
            k.value = ast.parse(text, mode="eval").body
    return copied


def drop_mask(n: ast.AST) -> Substitutions:
    """A load, store or atomic without its mask."""
    if is_call(n, "tl.load", "tl.store", "tl.atomic_add") and find_keyword(n, "mask"):
        yield n, drop_keywords(n, "mask", "other")


def drop_other(n: ast.AST) -> Substitutions:
    """A masked load without its filling."""
    if is_call(n, "tl.load") and find_keyword(n, "other"):
        yield n, drop_keywords(n, "other")


def alter_other(n: ast.AST) -> Substitutions:
    """A masked load filled with another value."""
    other = find_keyword(n, "other") if is_call(n, "tl.load") else None
    if other:
        yield n, set_keyword(n, "other", "1.0" if ast.unparse(other.value) == "0.0" else "0.0")


def loosen_comparison(n: ast.AST) -> Substitutions:
    """`<` becomes `<=`, `<=` becomes `<`."""
    if isinstance(n, ast.Compare) and isinstance(n.ops[0], ast.Lt | ast.LtE):
        changed = copy_node(n)
        changed.ops = [ast.LtE() if isinstance(n.ops[0], ast.Lt) else ast.Lt()]
        yield n, changed


def floor_division(n: ast.AST) -> Substitutions:
    """`cdiv` rounds down."""
    if is_call(n, "triton.cdiv", "tl.cdiv"):
        yield n, ast.BinOp(n.args[0], ast.FloorDiv(), n.args[1])


def shorten_loop(n: ast.AST) -> Substitutions:
    """A loop ends one step early."""
    if is_call(n, "range") and len(n.args) == 3:
        changed = copy_node(n)
        changed.args[1] = ast.BinOp(n.args[1], ast.Sub(), n.args[2])
        yield n, changed


def shift_block(n: ast.AST) -> Substitutions:
    """A program starts one block too late."""
    if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mult) and is_call(n.left, "tl.program_id"):
        yield n, ast.BinOp(ast.BinOp(n.left, ast.Add(), ast.Constant(1)), ast.Mult(), n.right)


def swap_stride(n: ast.AST) -> Substitutions:
    """The stride of another dimension."""
    if isinstance(n, ast.Call) and ast.unparse(n.func).endswith(".stride") and n.args:
        changed = copy_node(n)
        changed.args = [ast.Constant(1 - int(ast.unparse(n.args[0])))]
        yield n, changed


def drop_factor(n: ast.AST) -> Substitutions:
    """A product without its second factor."""
    if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mult):
        yield n, n.left


def drop_divisor(n: ast.AST) -> Substitutions:
    """A quotient without its divisor."""
    if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Div):
        yield n, n.left


def drop_cast(n: ast.AST) -> Substitutions:
    """No conversion to float32."""
    if isinstance(n, ast.Call) and ast.unparse(n).endswith(".to(tl.float32)"):
        yield n, n.func.value


def change_constant(n: ast.AST) -> Substitutions:
    """A float is one per cent larger."""
    if isinstance(n, ast.Constant) and isinstance(n.value, float) and n.value != 0:
        yield n, ast.Constant(round(n.value * 1.01, 6))


def drop_maximum(n: ast.AST) -> Substitutions:
    """The maximum is not subtracted."""
    if not isinstance(n, ast.BinOp) or not isinstance(n.op, ast.Sub):
        return
    if any(w in ast.unparse(n.right) for w in ("tl.max(", "largest", "max_ptr", "new")):
        yield n, n.left


def half_accumulator(n: ast.AST) -> Substitutions:
    """Sums are kept in float16."""
    if is_call(n, "tl.zeros") and find_keyword(n, "dtype"):
        yield n, set_keyword(n, "dtype", "tl.float16")


def use_tf32(n: ast.AST) -> Substitutions:
    """Products keep ten bits."""
    if is_call(n, "tl.dot") and find_keyword(n, "input_precision"):
        yield n, set_keyword(n, "input_precision", "'tf32'")


def drop_atomic(n: ast.AST) -> Substitutions:
    """A store where programs must add up."""
    if is_call(n, "tl.atomic_add"):
        yield n, rename_call(n, "tl.store")


def leave_unset(n: ast.AST) -> Substitutions:
    """A buffer that is added to does not start at zero."""
    if is_call(n, "torch.zeros"):
        yield n, rename_call(n, "torch.empty")


def drop_contiguous(n: ast.AST) -> Substitutions:
    """A layout is taken for granted."""
    if isinstance(n, ast.Call) and ast.unparse(n.func).endswith(".contiguous"):
        yield n, n.func.value


OPERATORS: dict[str, Callable[[ast.AST], Substitutions]] = {
    f.__name__: f
    for f in (
        drop_mask, drop_other, alter_other, loosen_comparison, floor_division, shorten_loop,
        shift_block, swap_stride, drop_factor, drop_divisor, drop_cast, change_constant,
        drop_maximum, half_accumulator, use_tf32, drop_atomic, leave_unset, drop_contiguous,
    )
}  # fmt: skip


@functools.cache
def _nodes(source: str) -> list[ast.AST]:
    """Return every node of a source; operators change copies."""
    return list(ast.walk(ast.parse(source)))


@functools.cache
def places(source: str, operator: str) -> list[tuple[ast.expr, ast.expr]]:
    """Return the expressions that an operator can replace, in order, with their replacements."""
    pairs = [pair for n in _nodes(source) for pair in OPERATORS[operator](n)]
    return sorted(
        pairs, key=lambda pair: (pair[0].lineno, pair[0].col_offset, pair[0].end_col_offset)
    )


def substitute(source: str, node: ast.expr, replacement: ast.expr) -> str:
    """Return the source with one expression replaced; the rest stays as it is written."""
    lines = source.splitlines(keepends=True)
    first, last = lines[node.lineno - 1], lines[node.end_lineno - 1]
    text = ast.unparse(ast.fix_missing_locations(replacement))
    if isinstance(replacement, ast.BinOp | ast.IfExp):
        text = f"({text})"
    head, tail = (
        first.encode()[: node.col_offset].decode(),
        last.encode()[node.end_col_offset :].decode(),
    )
    return "".join([*lines[: node.lineno - 1], head + text + tail, *lines[node.end_lineno :]])


@dataclass(frozen=True)
class Mutant:
    """One substitution.

    Attributes:
        kernel: the right kernel that it is made from.
        place: index of the substituted expression among those where the operator can act.
        status: the verdict that the validation must give.
        sha256: of the mutant's source.
    """

    name: str
    operator: str
    seed: int
    kernel: str
    place: int
    status: str = "wrong_values"
    sha256: str = ""


def draw(operator: str, seed: int) -> Mutant:
    """Choose a right kernel and a place in it."""
    chance = random.Random(f"{operator} {seed}")
    candidates = [
        p for p in sorted((KERNELS / "right").glob("*.py")) if places(p.read_text(), operator)
    ]
    path = chance.choice(candidates)
    place = chance.choice(range(len(places(path.read_text(), operator))))
    mutant = Mutant(f"{operator}_{seed}_{path.stem}", operator, seed, path.stem, place)
    return Mutant(**{**asdict(mutant), "sha256": _sha256(source_of(mutant))})


def source_of(mutant: Mutant) -> str:
    """Return a mutant's source; its docstring names its operator, seed and right kernel."""
    source = (KERNELS / "right" / f"{mutant.kernel}.py").read_text()
    node, replacement = places(source, mutant.operator)[mutant.place]
    docstring, code = substitute(source, node, replacement).split('"""', 2)[1:]
    op = next(line for line in docstring.splitlines() if line.startswith("op: "))
    was, now = (" ".join(ast.unparse(n).split()) for n in (node, replacement))
    device = GPU_ALONE.get(mutant.operator)
    needs = f"needs: gpu, {device}\n" if device else ""
    head = (
        f"{OPERATORS[mutant.operator].__doc__}\n\n{op}\nstatus: {mutant.status}\n{needs}"
        f"from: {mutant.kernel}\noperator: {mutant.operator}\nseed: {mutant.seed}\n"
        f"was: {was[:90]}\nnow: {now[:90]}\n"
    )
    return f'"""{head}"""{code}'


def draw_all() -> dict[str, Mutant]:
    """Draw a mutant of every operator and seed; of two with the same code, take the first."""
    mutants: dict[str, Mutant] = {}
    for operator in OPERATORS:
        for seed in SEEDS:
            mutant = draw(operator, seed)
            mutants.setdefault(source_of(mutant).split('"""', 2)[2], mutant)
    return {mutant.name: mutant for mutant in mutants.values()}


def manifest() -> tuple[Mutant, ...]:
    """Return the mutants that are part of the corpus."""
    return tuple(Mutant(**row) for row in json.loads(MANIFEST.read_text()))


def write_manifest() -> None:
    """Store the drawn mutants, without those in dropped.json."""
    dropped = json.loads(DROPPED.read_text())
    rows = [asdict(m) for name, m in sorted(draw_all().items()) if name not in dropped]
    MANIFEST.write_text(json.dumps(rows, indent=1) + "\n")


@functools.cache
def build(into: Path = KERNELS / "wrong") -> tuple[Path, ...]:
    """Write the manifest's mutants to a folder, and delete other mutants there.

    Raises:
        ValueError: a right kernel has changed, and with it a mutant.
    """
    paths = {into / f"{mutant.name}.py": mutant for mutant in manifest()}
    for path in set(into.glob(BUILT)) - set(paths):
        path.unlink()
    for path, mutant in paths.items():
        if not path.is_file() or _sha256(path.read_text()) != mutant.sha256:
            _write(path, mutant)
    return tuple(sorted(paths))


def _write(path: Path, mutant: Mutant) -> None:
    source = source_of(mutant)
    if _sha256(source) != mutant.sha256:
        raise ValueError(
            f"{mutant.kernel}.py has changed: the mutant {mutant.name} is another one. Run "
            "tests/faults/mutate.py manifest, then tests/faults/witness.py"
        )
    descriptor, name = tempfile.mkstemp(dir=path.parent)  # other processes may read the folder
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(source)
    os.replace(name, path)


def _sha256(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()


def main() -> None:
    """Build the mutants, print one, or write the manifest."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", nargs="?", choices=(*OPERATORS, "manifest"))
    parser.add_argument("seed", type=int, nargs="?", default=0)
    options = parser.parse_args()
    if options.action is None:
        print(f"{len(build())} mutants in {KERNELS / 'wrong'}")
    elif options.action == "manifest":
        write_manifest()
    else:
        print(source_of(draw(options.action, options.seed)))


if __name__ == "__main__":
    main()
