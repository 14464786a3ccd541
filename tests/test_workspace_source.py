"""Tests of a cell as a module: entry points, signatures, errors of a cell."""

import pytest

from triton_magics import languages
from triton_magics.errors import AmbiguousEntry, BadKernelSource

KERNEL = "import triton\n\n@triton.jit\ndef kernel(x_ptr, BLOCK_SIZE):\n    pass\n\n"

entry_of = languages.get().parse


@pytest.mark.parametrize(
    ("functions", "entry"),
    [
        (["triton_softmax", "solve", "other"], "triton_softmax"),
        (["triton_smax", "solve", "other"], "triton_smax"),
        (["solve", "other"], "solve"),
        (["other"], "other"),
        (["other", "_private"], "other"),
    ],
)
def test_the_entry_point_is_found_by_its_name(functions, entry):
    source = KERNEL + "".join(f"def {name}(x, dim=-1): return x\n" for name in functions)
    assert entry_of(source, op="softmax", aliases=("smax",)) == (entry, "(x, dim=-1)")


def test_canonical_name_takes_precedence_over_an_alias():
    source = "def triton_add(x): pass\ndef triton_vector_add(x): pass\n"
    assert entry_of(source, op="vector_add", aliases=("add",))[0] == "triton_vector_add"


def test_requested_entry_takes_precedence():
    source = "def triton_softmax(x): pass\ndef mine(x, *, eps: float = 1e-5): pass\n"
    assert entry_of(source, op="softmax", entry="mine") == ("mine", "(x, *, eps=1e-05)")


@pytest.mark.parametrize(
    "decorator",
    [
        "@triton.jit",
        "@jit",
        "@triton.jit(debug=True)",
        "@triton.autotune(configs=[], key=[])",
        "@triton.heuristics({})",
    ],
)
def test_a_kernel_is_no_entry_point(decorator):
    source = f"{decorator}\ndef kernel(x): pass\n\ndef launch(x): pass\n"
    assert entry_of(source, op="softmax") == ("launch", "(x)")


def test_entry_within_try_but_not_within_a_class():
    source = (
        "class A:\n    def method(self): pass\n\n"
        "try:\n    import x\nexcept ImportError:\n    def launch(x): pass\n"
    )
    assert entry_of(source, op="softmax") == ("launch", "(x)")


def test_an_entry_may_be_assigned():
    assert entry_of("triton_softmax = print\n", op="softmax") == ("triton_softmax", "")


@pytest.mark.parametrize(
    ("source", "message", "line"),
    [
        ("", "the cell is empty", None),
        ("# a comment\n\n", "the cell is empty", None),
        ("x = 1\ny = \0\n", "line 2: a NUL character", 2),
        ("def f(x):\n    y = 1 +\n", "line 2: invalid syntax: y = 1 +", 2),
        ("\n\nreturn 1\n", "line 3: 'return' outside function: return 1", 3),
        ("x = 1\n%time f()\n", "no IPython %, ! or ? in it", 2),
        ("!ls\n", "no IPython %, ! or ? in it", 1),
        ("x = '\ud800'\n", "not valid Unicode", None),
        ("(" * 500, "too many nested parentheses", 1),
        ("x = 1" + " + 1" * 100_000, "nested too deeply", None),
        (KERNEL, "no entry point: write def triton_softmax(...)", None),
        ("f = lambda x: x\n", "no entry point", None),
        ("@triton.jit\ndef triton_softmax(x): pass\n", "is a @triton.jit kernel", None),
    ],
)
def test_error_of_a_bad_cell(source, message, line):
    with pytest.raises(BadKernelSource) as caught:
        entry_of(source, op="softmax")
    assert message in str(caught.value)
    assert caught.value.line == line


def test_a_syntax_error_carries_the_lines_text():
    with pytest.raises(BadKernelSource) as caught:
        entry_of("def f(x):\n    y = 1 +\n", op="softmax")
    assert caught.value.code == "y = 1 +"


def test_a_warning_about_the_cell_is_left_to_python():
    assert entry_of("def f(x):\n    return '\\d'\n", op="softmax")[0] == "f"


def test_unknown_entry_suggests_the_nearest_name():
    with pytest.raises(BadKernelSource, match=r"no 'lanch' in the cell. Did you mean 'launch'"):
        entry_of("def launch(x): pass\n", op="softmax", entry="lanch")


def test_several_candidates_are_ambiguous():
    with pytest.raises(AmbiguousEntry, match=r"2 functions .* one, two; .* --entry one"):
        entry_of("def one(x): pass\ndef two(x): pass\n", op="softmax")
