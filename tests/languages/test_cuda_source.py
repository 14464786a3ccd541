"""CUDA C++ sources: kernels, launch sections, `#define`s, and what is refused when it is saved."""

from __future__ import annotations

import pytest

from triton_magics import languages
from triton_magics.errors import AmbiguousEntry, BadKernelSource, BadValue, UnknownName
from triton_magics.languages import Entry
from triton_magics.languages.cuda.cpp_source import (
    Parameter,
    find_defines,
    find_kernels,
    read_options,
    read_section,
)
from triton_magics.languages.cuda.defines import DefineSource

KERNEL = "__global__ void relu(const float* x, float* out, int n) { out[0] = x[0]; }\n"
SECTION = """\
/*py
def cuda_relu(x):
    out = torch.empty_like(x)
    relu<<<cdiv(x.numel(), 256), 256>>>(x, out, x.numel())
    return out
*/
"""
SOURCE = KERNEL + SECTION


def parse(source: str, entry: str | None = None) -> Entry:
    return languages.get("cuda").parse(source, op="relu", entry=entry)


def test_kernels_are_found_with_their_parameters() -> None:
    source = """\
// __global__ void in_a_comment(int a);
const char* text = "__global__ void in_a_text(int a);";
template <typename T, int BLOCK = 256>
static __global__ void __launch_bounds__(BLOCK, 2) first(
    const T* __restrict__ x, /* float b, */ T *out, unsigned long long n, float scale = 1.f) {}
extern "C" __global__ void second(int) ;
__global__ void third(void) {}
__global__ __launch_bounds__(128) void fourth(float x[], const int4* const* y) {}
"""
    kernels = find_kernels(source)
    assert list(kernels) == ["first", "second", "third", "fourth"]
    assert kernels["first"].template == ("T", "BLOCK")
    assert kernels["first"].line == 4
    assert kernels["first"].parameters == (
        Parameter("x", "T", True),
        Parameter("out", "T", True),
        Parameter("n", "unsigned long long", False),
        Parameter("scale", "float", False),
    )
    assert kernels["third"].parameters == ()
    assert [p.is_pointer for p in kernels["fourth"].parameters] == [True, True]
    assert kernels["second"].template == ()


def test_a_launch_section_is_python_at_the_same_lines() -> None:
    section = read_section(SOURCE.replace("relu<<<", "relu<{ctype(x)}, 4><<<"))
    assert section is not None
    lines = section.splitlines()
    assert lines[:2] == ["", ""]
    assert lines[4].strip() == (
        "relu.configure(f'<{ctype(x)}, 4>', cdiv(x.numel(), 256), 256)(x, out, x.numel())"
    )
    assert lines[2] == "def cuda_relu(x):"


def test_a_launch_section_may_be_indented_or_starred() -> None:
    indented = SECTION.replace("\n", "\n    ").replace("    */", "*/")
    starred = SECTION.replace("\n", "\n * ").replace(" * */", " */")
    for text in (indented, starred):
        assert parse(KERNEL + text) == ("cuda_relu", "(x)")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("int x;\n" + SECTION, "no __global__ function in the cell"),
        (KERNEL, "nothing launches relu: end the cell with a comment /\\*py"),
        (SOURCE + SECTION, "line 8: a second /\\*py section"),
        (SOURCE.replace("relu<<<", "rilu<<<"), "line 5: no kernel 'rilu'. Did you mean 'relu'"),
        (SOURCE.replace("(x, out, x.numel())", "(x, out)"), r"3 arguments \(x, out, n\), the"),
        (SOURCE.replace("(x, out, x.numel())", "(x, out, n=1)"), "no keyword arguments"),
        (SOURCE.replace("cdiv(x.numel(), 256), 256", "0, 256"), "grid.x is 0; 1 to 2,147,483,647"),
        (SOURCE.replace("cdiv(x.numel(), 256), 256", "(1, 70000), 256"), "grid.y is 70000"),
        (SOURCE.replace("256), 256>>>", "256), 2048>>>"), "block.x is 2048; 1 to 1,024"),
        (SOURCE.replace("256), 256>>>", "256), (512, 4)>>>"), "a block of 2,048 threads; at most"),
        (SOURCE.replace("cdiv(x.numel(), 256), 256", "4"), "has 2 to 4 parts, this one 1"),
        (SOURCE.replace("    relu<<<", "    print("), "line 5: "),
        (SOURCE.replace("relu<<<cdiv(x.numel(), 256), 256>>>", "print"), "launches no kernel"),
        (SOURCE.replace("    return out", "   return out"), "line 6: unindent"),
        (SOURCE.replace("def cuda_relu", "OPTIONS = ['-o']\ndef cuda_relu"), "-o is not allowed"),
        (SOURCE.replace("def cuda_relu", "OPTIONS = '-G'\ndef cuda_relu"), "a list of texts"),
    ],
)  # fmt: skip
def test_a_source_that_can_not_work_is_refused(source: str, message: str) -> None:
    with pytest.raises(BadKernelSource, match=message):
        parse(source)


def test_all_faults_of_the_launches_are_in_one_message() -> None:
    source = SOURCE.replace("cdiv(x.numel(), 256), 256>>>(x, out,", "0, 2048>>>(x,")
    with pytest.raises(BadKernelSource) as raised:
        parse(source)
    assert [word in str(raised.value) for word in ("grid.x", "block.x", "3 arguments")] == [
        True
    ] * 3
    assert raised.value.line == 5


def test_two_functions_of_a_section_need_a_name() -> None:
    two = SOURCE.replace("def cuda_relu", "def a(x):\n    return x\n\n\ndef b")
    with pytest.raises(AmbiguousEntry, match="2 functions could be the entry point: a, b"):
        parse(two)
    assert parse(two, "b").name == "b"


def test_a_missing_entry_is_named_with_those_that_are_there() -> None:
    with pytest.raises(BadKernelSource, match="no 'other' in the cell. Its functions: cuda_relu"):
        parse(SOURCE, "other")


def test_options_are_read() -> None:
    assert read_options('OPTIONS = ["--use_fast_math", "-DN=4"]\n') == ("--use_fast_math", "-DN=4")
    assert read_options("x = 1\n") == ()


def test_numbers_of_defines_are_the_tunable_parameters() -> None:
    text = """\
#define BLOCK 256
#define SCALE 0.5f  // a number
  # define MASK 0xFFu
#define NAME "text"
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define TWICE 1
#define TWICE 2
/* #define HIDDEN 3 */
"""
    assert [name for name, _, _ in find_defines(text)] == [
        "BLOCK",
        "SCALE",
        "MASK",
        "TWICE",
        "TWICE",
    ]
    tunables = DefineSource(text)
    assert tunables.current(tunables.knobs) == {"BLOCK": 256, "SCALE": 0.5, "MASK": 255}
    changed = tunables.apply({"BLOCK": 1024, "SCALE": 2})
    assert changed == text.replace("256", "1024").replace("0.5f", "2f")
    with pytest.raises(UnknownName, match="no #define of a number called 'BLOCKS'. Did you mean"):
        tunables.check("BLOCKS", 1)
    with pytest.raises(BadValue, match="BLOCK: 1.5 is not a whole number"):
        tunables.check("BLOCK", 1.5)
