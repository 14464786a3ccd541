"""The pairs of faults: two cells, the form in which they meet, and the version that has both."""

from __future__ import annotations

import random
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from tests.faults.engine.fault_lab import FILES

# They take minutes, or much of a machine's memory.
SLOW = ("eats_memory", "has_its_child_eat_memory", "starts_too_many_processes", "multiplies")
# From an orphan, they would kill the parent of the notebook.
KILLERS = ("kills_the_nanny", "kills_its_parent")
VERBS = ("run", "validate")

# Where a version commits the first fault (`a`) beside the second (`b`).
FORMS = {
    "before": """
def triton_relu(x):
    try:
        a(x)
    except BaseException:
        pass
    return b(x)
""",
    "while it raises": """
def triton_relu(x):
    try:
        return a(x)
    finally:
        b(x)
""",
    "in a thread": """
import threading


def triton_relu(x):
    threading.Thread(target=a, args=(x,), daemon=True).start()
    return b(x)
""",
    "in a child": """
import os


def triton_relu(x):
    if os.fork() == 0:
        try:
            a(x)
        finally:
            os._exit(7)
    return b(x)
""",
    "at import": """
import torch

try:
    a(torch.ones(4, 4))
except BaseException:
    pass


def triton_relu(x):
    return b(x)
""",
    "in a destructor": """
class Late:
    def __init__(self, x):
        self.x = x

    def __del__(self):
        a(self.x)


def triton_relu(x):
    late = Late(x)
    return b(x)
""",
    "at exit": """
import atexit


def triton_relu(x):
    atexit.register(a, x)
    return b(x)
""",
    "on an alarm": """
import signal


def triton_relu(x):
    signal.signal(signal.SIGALRM, lambda *_: a(x))
    signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
    return b(x)
""",
    "in the result": """
import torch


class Odd(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        a(torch.ones(4, 4))
        return super().__torch_function__(func, types, args, kwargs or {})


def triton_relu(x):
    out = b(x)
    return out.as_subclass(Odd) if isinstance(out, torch.Tensor) else out
""",
}
JOBS = "job after job"


@dataclass(frozen=True)
class Pair:
    """Two faults, the form in which they meet, and the verb that runs them."""

    first: str
    form: str
    second: str
    verb: str

    def __str__(self) -> str:
        return f"{self.first} | {self.form} | {self.second} | {self.verb}"

    @property
    def source(self) -> str:
        """The version that has both."""
        a, b = (
            _as_function(name, source_of(cell))
            for name, cell in (("a", self.first), ("b", self.second))
        )
        return f"{a}\n\n{b}\n{FORMS[self.form]}"


def source_of(cell: str) -> str:
    return next(path for path in FILES if path.stem == cell).read_text()


def _as_function(name: str, source: str) -> str:
    """Return code that names the entry of a cell; the rest of the cell is local to it."""
    body = textwrap.indent(f"{source}\nreturn triton_relu", "    ")
    return f"def _{name}():\n{body}\n\n\ndef {name}(x):\n    return _{name}()(x)\n"


def draw(dice: random.Random) -> Iterator[Pair]:
    """Yield pairs without end."""
    cells = [path.stem for path in FILES if path.stem not in SLOW]
    while True:
        first, second = dice.choice(cells), dice.choice(cells)
        form = dice.choice([*FORMS, JOBS])
        if first not in KILLERS or form != "in a child":
            yield Pair(first, form, second, dice.choice(VERBS))
