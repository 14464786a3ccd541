"""Tests of the knobs of a version: constants, launches, tuning; all else stays byte for byte."""

from __future__ import annotations

import difflib

import pytest

from triton_magics.errors import BadKernelSource, BadValue, UnknownName
from triton_magics.languages.triton.tunables import Source
from triton_magics.model.sweep import Setting

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


def changed_lines(source: str, settings: dict[str, Setting]) -> list[str]:
    """Return the lines that differ, as they are afterwards."""
    source_after = Source(source).apply(settings)
    compile(source_after, "<made>", "exec")
    diff = difflib.ndiff(source.splitlines(), source_after.splitlines())
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
def test_knob_changes_only_its_own_places(settings: dict[str, Setting], lines: list[str]) -> None:
    assert changed_lines(PLAIN, settings) == lines


def test_several_knobs_at_once() -> None:
    source = Source(PLAIN).apply({"num_stages": 2, "BLOCK_SIZE": 64, "num_warps": 1})
    assert "BLOCK_SIZE = 64  # elements" in source
    launches = [line for line in source.splitlines() if "kernel[" in line]
    assert all(line.count("num_stages=2") == line.count("num_warps=1") == 1 for line in launches)
    compile(source, "<made>", "exec")


@pytest.mark.parametrize("source", [TUNED, NAMED])
def test_one_configuration_replaces_the_tuners(source: str) -> None:
    lines = changed_lines(source, {"BLOCK": 256, "num_warps": 2})
    first = "triton.Config" if source is TUNED else "Config"
    stages = ", num_stages=3" if source is TUNED else ""
    options = f", num_warps=2{stages}" if source is TUNED else ", num_warps=2"
    assert lines == [f"configs=[{first}({{'BLOCK': 256, 'GROUP': 8}}{options})],"]


def test_computed_configurations_require_every_constant() -> None:
    with pytest.raises(BadValue, match="compute BLOCK: name its values too, BLOCK="):
        Source(COMPUTED).apply({"num_warps": 2})
    lines = changed_lines(COMPUTED, {"BLOCK": 32, "num_warps": 2})
    assert lines == ["configs=[triton.Config({'BLOCK': 32, 'GROUP': 8}, num_warps=2)],"]


def test_knobs_have_their_current_values() -> None:
    values = {name: knob.value for name, knob in Source(PLAIN).knobs.items()}
    assert values == {
        "BLOCK_SIZE": 1024, "SCALE": -0.5, "PRECISION": "ieee", "FAST": True, "LIMIT": 16,
        "EVEN": False, "BLOCK": 8, "TILE": 1,
        "num_warps": None, "num_stages": None, "num_ctas": None, "maxnreg": None,
    }  # fmt: skip
    assert Source(TUNED).knobs["num_warps"].value == 4
    assert Source(TUNED).knobs["BLOCK"].value == 64


@pytest.mark.parametrize(
    ("name", "value", "error", "words"),
    [
        (
            "BLOK_SIZE",
            1,
            UnknownName,
            "no tunable parameter 'BLOK_SIZE' in this version. Did you mean 'BLOCK_SIZE'",
        ),
        ("ROWS", 1, UnknownName, "line 19 sets it inside triton_op, not at module level"),
        ("COMPUTED", 1, UnknownName, "line 10 computes it; write COMPUTED = ... at the top"),
        ("BLOCK_SIZE", "many", BadValue, "BLOCK_SIZE is 1024 here"),
        ("BLOCK_SIZE", True, BadValue, "BLOCK_SIZE is 1024 here"),
        ("BLOCK_SIZE", 1.5, BadValue, "BLOCK_SIZE is 1024 here"),
        ("num_warps", 0, BadValue, "num_warps=0: write a whole number from 1"),
        ("num_warps", "four", BadValue, "num_warps=four: write a whole number"),
    ],
)
def test_refused_knob_says_why_and_what_to_do(
    name: str, value: Setting, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        Source(PLAIN).apply({name: value})


def test_refused_knob_of_a_computed_block() -> None:
    source = PLAIN.replace("BLOCK=8", "BLOCK=ROWS").replace("BLOCK=BLOCK_SIZE", "BLOCK=2 * ROWS")
    with pytest.raises(UnknownName, match="line 20 computes it at the launch; write BLOCK = ..."):
        Source(source).apply({"BLOCK": 8})


def test_launch_argument_names_its_constant() -> None:
    source = PLAIN.replace("BLOCK=8", "BLOCK=BLOCK_SIZE")
    with pytest.raises(UnknownName, match="the launch takes it from BLOCK_SIZE: name that"):
        Source(source).apply({"BLOCK": 8})


def test_a_source_that_is_no_python_is_refused() -> None:
    with pytest.raises(BadKernelSource, match="line 1"):
        Source("def (:\n")


KEYWORDS = """\
import triton


@triton.jit
def kernel(x_ptr, BLOCK):
    pass


def triton_op(x, ROWS=1, eps=1e-5, *, TILE=64, SET=2, num_warps=4):
    SET = SET + 1
    kernel[(ROWS,)](x, BLOCK=TILE * SET, num_warps=num_warps)


def helper(x, OTHER=3):
    return x
"""


def test_keywords_in_capitals_of_a_wrapper_are_knobs() -> None:
    knobs = Source(KEYWORDS).knobs
    assert {name: knob.value for name, knob in knobs.items() if name.isupper()} == {
        "ROWS": 1, "TILE": 64,
    }  # fmt: skip
    assert "eps" not in knobs
    changed = Source(KEYWORDS).apply({"ROWS": 4, "num_warps": 8})
    assert "def triton_op(x, ROWS=4, eps=1e-5" in changed
    assert "num_warps=8)" in changed
