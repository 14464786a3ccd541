"""A cell as a module: entry points, signatures, and what is wrong with a cell."""

import pytest

from triton_magics.errors import AmbiguousEntry, BadKernelSource
from triton_magics.workspace import inspect_source

KERNEL = "import triton\n\n@triton.jit\ndef kernel(x_ptr, BLOCK_SIZE):\n    pass\n\n"


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
    assert inspect_source("softmax", ("smax",), source) == (entry, "(x, dim=-1)")


def test_the_canonical_name_goes_before_an_alias():
    source = "def triton_add(x): pass\ndef triton_vector_add(x): pass\n"
    assert inspect_source("vector_add", ("add",), source)[0] == "triton_vector_add"


def test_an_entry_that_was_asked_for_goes_before_all():
    source = "def triton_softmax(x): pass\ndef mine(x, *, eps: float = 1e-5): pass\n"
    assert inspect_source("softmax", (), source, "mine") == ("mine", "(x, *, eps=1e-05)")


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
    assert inspect_source("softmax", (), source) == ("launch", "(x)")


def test_a_function_within_try_counts_and_one_within_a_class_does_not():
    source = (
        "class A:\n    def method(self): pass\n\n"
        "try:\n    import x\nexcept ImportError:\n    def launch(x): pass\n"
    )
    assert inspect_source("softmax", (), source) == ("launch", "(x)")


def test_an_entry_may_be_assigned():
    assert inspect_source("softmax", (), "triton_softmax = print\n") == ("triton_softmax", "")


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
def test_a_bad_cell_is_told_what_is_wrong(source, message, line):
    with pytest.raises(BadKernelSource) as caught:
        inspect_source("softmax", (), source)
    assert message in str(caught.value)
    assert caught.value.line == line


def test_a_syntax_error_carries_the_lines_text():
    with pytest.raises(BadKernelSource) as caught:
        inspect_source("softmax", (), "def f(x):\n    y = 1 +\n")
    assert caught.value.code == "y = 1 +"


def test_a_warning_about_the_cell_is_left_to_python():
    assert inspect_source("softmax", (), "def f(x):\n    return '\\d'\n")[0] == "f"


def test_an_unknown_entry_gets_the_nearest_name():
    with pytest.raises(BadKernelSource, match=r"no 'lanch' in the cell. Did you mean 'launch'"):
        inspect_source("softmax", (), "def launch(x): pass\n", "lanch")


def test_several_candidates_are_ambiguous():
    with pytest.raises(AmbiguousEntry, match=r"2 functions .* one, two; .* --entry one"):
        inspect_source("softmax", (), "def one(x): pass\ndef two(x): pass\n")
