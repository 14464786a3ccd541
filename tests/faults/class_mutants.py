"""Make wrong kernels of a class: one seeded substitution in a right kernel of the class.

    python tests/faults/class_mutants.py                 build the mutants of class_mutants.json
    python tests/faults/class_mutants.py share_draws 2   print the mutant of an operator and a seed
    python tests/faults/class_mutants.py manifest        draw every operator with the seeds 0 to 3

The manifest lists the choices, so that a new right kernel changes none of them; the sources are
built from it into the folders of the classes. A draw for which `class_witness.py` finds no input
that shows a fault is listed in class_dropped.json. Every fourth draw is held out. A right kernel
with `drawn: no` is none that mutants are made from: added later, it changes no draw.
"""

from __future__ import annotations

import argparse
import ast
import functools
import hashlib
import json
import os
import random
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from tests.faults.class_kernels import CLASSES, CLASSES_FOLDER, read_kernel
from tests.faults.class_operators import CLASS_OPERATORS
from tests.faults.mutate import BUILT, substitute

MANIFEST = Path(__file__).parent / "class_mutants.json"
DROPPED = Path(__file__).parent / "class_dropped.json"
SEEDS = range(4)
HELD_OUT_SEED = 1


@dataclass(frozen=True)
class ClassMutant:
    """One substitution in a right kernel of a class.

    Attributes:
        kernel: the right kernel that it is made from.
        place: index of the substituted expression among those where the operator can act.
        sha256: of the mutant's source.
    """

    name: str
    operator: str
    seed: int
    kernel: str
    place: int
    sha256: str = ""

    @property
    def class_name(self) -> str:
        """Return the class of its operator."""
        return CLASS_OPERATORS[self.operator][0]

    @property
    def path(self) -> Path:
        """Return the file that it is built into."""
        return CLASSES_FOLDER / self.class_name / f"{self.name}.py"


@functools.cache
def places(source: str, operator: str) -> list[tuple[ast.expr, ast.expr]]:
    """Return the expressions that an operator can replace, in order, with their replacements."""
    act = CLASS_OPERATORS[operator][2]
    pairs = [pair for node in ast.walk(ast.parse(source)) for pair in act(node)]
    return sorted(pairs, key=lambda p: (p[0].lineno, p[0].col_offset, p[0].end_col_offset))


def right_kernels(class_name: str) -> list[Path]:
    """Return the right kernels of a class that mutants are drawn from, by name."""
    texts = {p: p.read_text() for p in sorted((CLASSES_FOLDER / class_name).glob("*.py"))}
    return [p for p, t in texts.items() if "\nstatus: passed" in t and "\ndrawn: no" not in t]


def draw(operator: str, seed: int) -> ClassMutant:
    """Choose a right kernel of the operator's class and a place in it."""
    chance = random.Random(f"{operator} {seed}")
    paths = right_kernels(CLASS_OPERATORS[operator][0])
    path = chance.choice([p for p in paths if places(p.read_text(), operator)])
    place = chance.choice(range(len(places(path.read_text(), operator))))
    mutant = ClassMutant(f"{operator}_{seed}_{path.stem}", operator, seed, path.stem, place)
    return ClassMutant(**{**asdict(mutant), "sha256": _sha256(source_of(mutant))})


def source_of(mutant: ClassMutant) -> str:
    """Return a mutant's source; its docstring names its operator, seed and right kernel."""
    kernel = read_kernel(CLASSES_FOLDER / mutant.class_name / f"{mutant.kernel}.py")
    source = kernel.path.read_text()
    node, replacement = places(source, mutant.operator)[mutant.place]
    code = substitute(source, node, replacement).split('"""', 2)[2]
    _, cause, act = CLASS_OPERATORS[mutant.operator]
    fields = {
        "op": kernel.op,
        "status": "failed",
        "cause": cause,
        "held_out": "yes" if mutant.seed == HELD_OUT_SEED else "no",
        "from": mutant.kernel,
        "operator": mutant.operator,
        "seed": mutant.seed,
        "line": node.lineno,
    }
    text = "\n".join(f"{name}: {value}" for name, value in fields.items())
    return f'"""{act.__doc__}\n\n{text}\n"""{code}'


def draw_all() -> dict[str, ClassMutant]:
    """Draw a mutant of every operator and seed; of two with the same code, take the first."""
    mutants: dict[str, ClassMutant] = {}
    for operator in CLASS_OPERATORS:
        for seed in SEEDS:
            mutant = draw(operator, seed)
            mutants.setdefault(source_of(mutant).split('"""', 2)[2], mutant)
    return {mutant.name: mutant for mutant in mutants.values()}


def manifest() -> tuple[ClassMutant, ...]:
    """Return the mutants that are part of the corpus."""
    return tuple(ClassMutant(**row) for row in json.loads(MANIFEST.read_text()))


def write_manifest() -> None:
    """Store the drawn mutants, without those that have no fault."""
    dropped = json.loads(DROPPED.read_text()) if DROPPED.exists() else {}
    rows = [asdict(m) for name, m in sorted(draw_all().items()) if name not in dropped]
    MANIFEST.write_text(json.dumps(rows, indent=1) + "\n")


@functools.cache
def build() -> tuple[Path, ...]:
    """Write the manifest's mutants to the folders of their classes, and delete others there.

    Raises:
        ValueError: a right kernel or an operator has changed, and with it a mutant.
    """
    mutants = {mutant.path: mutant for mutant in manifest()}
    for name in CLASSES:
        for path in set((CLASSES_FOLDER / name).glob(BUILT)) - set(mutants):
            path.unlink()
    for path, mutant in mutants.items():
        if not path.is_file() or _sha256(path.read_text()) != mutant.sha256:
            _write(path, mutant)
    return tuple(sorted(mutants))


def _write(path: Path, mutant: ClassMutant) -> None:
    source = source_of(mutant)
    if _sha256(source) != mutant.sha256:
        raise ValueError(
            f"{mutant.kernel}.py or {mutant.operator} has changed: the mutant {mutant.name} is "
            "another one. Run tests/faults/class_mutants.py manifest, then class_witness.py"
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
    parser.add_argument("action", nargs="?", choices=(*CLASS_OPERATORS, "manifest"))
    parser.add_argument("seed", type=int, nargs="?", default=0)
    options = parser.parse_args()
    if options.action is None:
        print(f"{len(build())} mutants in {CLASSES_FOLDER}")
    elif options.action == "manifest":
        write_manifest()
    else:
        print(source_of(draw(options.action, options.seed)))


if __name__ == "__main__":
    main()
