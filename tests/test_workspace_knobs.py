"""What of a version can be turned: constants, launches, tuning; all else stays byte for byte."""

from __future__ import annotations

import difflib

import pytest

from triton_magics.errors import BadKernelSource, BadValue, UnknownName
from triton_magics.model.sweep import Setting
from triton_magics.workspace.knobs import Source

PLAIN = '''\
"""Ein Kern — naïve."""
import triton
import triton.language as tl

BLOCK_SIZE = 1024  # elements
SCALE: float = -0.5
PRECISION = "ieee"
FAST = True
LIMIT = tl.constexpr(16)
COMPUTED = 4 * 256


@triton.jit
def kernel(x_ptr, n, EVEN: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr):
    pass


def triton_op(x):
    ROWS = 4
    kernel[(1,)](x, x.numel(), EVEN=False, BLOCK=BLOCK_SIZE, TILE=2 * ROWS)
    kernel[lambda meta: (ROWS,)](x, 1, EVEN=False, BLOCK=8, TILE=1, num_warps=8 if ROWS else 4)
    return x
'''
FIRST = "kernel[(1,)](x, x.numel(), {})"
SECOND = "kernel[lambda meta: (ROWS,)](x, 1, {})"
TUNED = """\
import triton


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 64, "GROUP": 8}, num_warps=4, num_stages=3),
        triton.Config({"BLOCK": 128, "GROUP": 8}, num_warps=8),
    ],
    key=["n"],
)
@triton.jit
def kernel(x_ptr, n, BLOCK, GROUP):
    pass


def triton_op(x):
    kernel[(1,)](x, x.numel())
    return x
"""
COMPUTED = TUNED.replace(
    TUNED[TUNED.index("configs=[") : TUNED.index("    key=")],
    'configs=[triton.Config({"BLOCK": b, "GROUP": 8}, num_warps=w) for b in A for w in B],\n',
)
NAMED = "CONFIGS = [Config({'BLOCK': 64, 'GROUP': 8})]\n" + TUNED.replace(
    TUNED[TUNED.index("configs=[") : TUNED.index("    key=")], "configs=CONFIGS,\n"
)


def changed(source: str, settings: dict[str, Setting]) -> list[str]:
    """The lines that differ, as they are afterwards."""
    made = Source(source).turned(settings)
    compile(made, "<made>", "exec")
    diff = difflib.ndiff(source.splitlines(), made.splitlines())
    return [line[2:].strip() for line in diff if line.startswith("+ ")]


@pytest.mark.parametrize(
    ("settings", "lines"),
    [
        ({"BLOCK_SIZE": 256}, ["BLOCK_SIZE = 256  # elements"]),
        ({"SCALE": 2}, ["SCALE: float = 2"]),
        ({"PRECISION": "tf32x3"}, ["PRECISION = 'tf32x3'"]),
        ({"FAST": False}, ["FAST = False"]),
        ({"LIMIT": 32}, ["LIMIT = tl.constexpr(32)"]),
        (
            {"EVEN": True},
            [
                FIRST.format("EVEN=True, BLOCK=BLOCK_SIZE, TILE=2 * ROWS"),
                SECOND.format("EVEN=True, BLOCK=8, TILE=1, num_warps=8 if ROWS else 4"),
            ],
        ),
        (
            {"num_warps": 2},
            [
                FIRST.format("EVEN=False, BLOCK=BLOCK_SIZE, TILE=2 * ROWS, num_warps=2"),
                SECOND.format("EVEN=False, BLOCK=8, TILE=1, num_warps=2"),
            ],
        ),
        ({"BLOCK_SIZE": 1024}, []),
    ],
)
def test_a_knob_changes_its_own_places_and_nothing_else(
    settings: dict[str, Setting], lines: list[str]
) -> None:
    assert changed(PLAIN, settings) == lines


def test_several_knobs_at_once() -> None:
    made = Source(PLAIN).turned({"num_stages": 2, "BLOCK_SIZE": 64, "num_warps": 1})
    assert "BLOCK_SIZE = 64  # elements" in made
    launches = [line for line in made.splitlines() if "kernel[" in line]
    assert all(line.count("num_stages=2") == line.count("num_warps=1") == 1 for line in launches)
    compile(made, "<made>", "exec")


@pytest.mark.parametrize("source", [TUNED, NAMED])
def test_one_configuration_takes_the_place_of_the_tuners(source: str) -> None:
    made = changed(source, {"BLOCK": 256, "num_warps": 2})
    first = "triton.Config" if source is TUNED else "Config"
    stages = ", num_stages=3" if source is TUNED else ""
    options = f", num_warps=2{stages}" if source is TUNED else ", num_warps=2"
    assert made == [f"configs=[{first}({{'BLOCK': 256, 'GROUP': 8}}{options})],"]


def test_configurations_that_are_computed_ask_for_every_constant() -> None:
    with pytest.raises(BadValue, match="compute BLOCK: name its values too, BLOCK="):
        Source(COMPUTED).turned({"num_warps": 2})
    made = changed(COMPUTED, {"BLOCK": 32, "num_warps": 2})
    assert made == ["configs=[triton.Config({'BLOCK': 32, 'GROUP': 8}, num_warps=2)],"]


def test_what_can_be_turned_with_what_it_is_now() -> None:
    found = {name: knob.value for name, knob in Source(PLAIN).knobs.items()}
    assert found == {
        "BLOCK_SIZE": 1024, "SCALE": -0.5, "PRECISION": "ieee", "FAST": True, "LIMIT": 16,
        "EVEN": False, "BLOCK": 8, "TILE": 1,
        "num_warps": None, "num_stages": None, "num_ctas": None, "maxnreg": None,
    }  # fmt: skip
    assert Source(TUNED).knobs["num_warps"].value == 4
    assert Source(TUNED).knobs["BLOCK"].value == 64


@pytest.mark.parametrize(
    ("name", "value", "error", "words"),
    [
        ("BLOK_SIZE", 1, UnknownName, "no constant 'BLOK_SIZE'. Did you mean 'BLOCK_SIZE'"),
        ("ROWS", 1, UnknownName, "line 19 sets it inside triton_op, not at module level"),
        ("COMPUTED", 1, UnknownName, "line 10 computes it; write COMPUTED = ... at the top"),
        ("BLOCK_SIZE", "many", BadValue, "BLOCK_SIZE is 1024 here"),
        ("BLOCK_SIZE", True, BadValue, "BLOCK_SIZE is 1024 here"),
        ("BLOCK_SIZE", 1.5, BadValue, "BLOCK_SIZE is 1024 here"),
        ("num_warps", 0, BadValue, "num_warps=0: write a whole number from 1"),
        ("num_warps", "four", BadValue, "num_warps=four: write a whole number"),
    ],
)
def test_what_can_not_be_turned_says_why_and_what_to_do(
    name: str, value: Setting, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        Source(PLAIN).turned({name: value})


def test_a_launch_that_computes_its_block_says_so() -> None:
    source = PLAIN.replace("BLOCK=8", "BLOCK=ROWS").replace("BLOCK=BLOCK_SIZE", "BLOCK=2 * ROWS")
    with pytest.raises(UnknownName, match="line 20 computes it at the launch; write BLOCK = ..."):
        Source(source).turned({"BLOCK": 8})


def test_a_launch_that_passes_a_constant_on_names_that() -> None:
    source = PLAIN.replace("BLOCK=8", "BLOCK=BLOCK_SIZE")
    with pytest.raises(UnknownName, match="the launch takes it from BLOCK_SIZE: name that"):
        Source(source).turned({"BLOCK": 8})


def test_a_source_that_is_no_python_is_refused() -> None:
    with pytest.raises(BadKernelSource, match="line 1"):
        Source("def (:\n")
