"""What the table of verbs makes of words that contradict each other, and what its help names."""

from __future__ import annotations

import pytest

from triton_magics.errors import BadValue
from triton_magics.lab import Lab
from triton_magics.verbs import VERBS, Parser


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
