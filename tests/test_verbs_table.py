"""What the table of verbs makes of words that contradict each other, and what its help names."""

from __future__ import annotations

import pytest

from triton_magics.errors import BadValue
from triton_magics.lab import Lab
from triton_magics.verbs import VERBS, Parser, as_commands


def test_a_setting_that_is_named_twice_is_refused_with_the_line_that_was_meant() -> None:
    verb = VERBS["triton_sweep"]
    words = "softmax v1 num_warps=4 BLOCK_SIZE=256 num_warps=8,16"
    asked = Parser(verb.sign, verb.arguments).parse_line(words)
    with pytest.raises(BadValue, match="num_warps is named twice: write num_warps=4,8,16$"):
        verb.call(Lab.__new__(Lab), asked)


def test_the_help_of_an_option_names_each_of_its_choices() -> None:
    for verb in VERBS.values():
        for each in verb.arguments:
            for choice in each.options.get("choices", ()):
                assert choice in each.options["help"], (verb.name, each.flags)


@pytest.mark.parametrize(
    ("said", "in_a_terminal"),
    [
        ("Next: %triton_bench softmax", "Next: triton-magics bench softmax"),
        ("`%triton_log softmax --tests`", "`triton-magics export softmax --tests`"),
        ("write %%triton_kernel softmax v1.", "write triton-magics write softmax v1 FILE."),
        (
            "`%%triton_kernel softmax v1 --technique x`",
            "`triton-magics write softmax v1 FILE --technique x`",
        ),
        ("%%triton_kernel alone", "triton-magics write alone"),
        ("%triton_panel softmax", "%triton_panel softmax"),
        ("%config TritonMagics.device = 'auto' takes", "TRITON_MAGICS_DEVICE='auto' takes"),
        ("another: %config TritonMagics.workspace = 'FOLDER'", "another: --workspace 'FOLDER'"),
        ("at cell line 7 (kernels/relu/v2.py:9)", "at line 7 of the file (kernels/relu/v2.py:9)"),
        ("a cell of the heat map", "a cell of the heat map"),
    ],
)
def test_a_message_for_a_terminal_names_commands(said: str, in_a_terminal: str) -> None:
    assert as_commands(said) == in_a_terminal
