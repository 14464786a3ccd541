"""The verbs in words: what one types, and what it asks of the Lab.

The magics, their help, their completion, the command line and the reference in docs/ are all built
from one table.
"""

from triton_magics.verbs.arguments import Argument, BadLine, Parser, argument
from triton_magics.verbs.table import OP, VERBS, Verb, failed, source_page
from triton_magics.verbs.wording import as_commands

__all__ = [
    "OP",
    "VERBS",
    "Argument",
    "BadLine",
    "Parser",
    "Verb",
    "argument",
    "as_commands",
    "failed",
    "source_page",
]
