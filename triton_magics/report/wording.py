"""A document in the words of another front end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from triton_magics.report import blocks
from triton_magics.report.prose import parse

Say = Callable[[str], str]


def reworded(document: blocks.Document, say: Say) -> blocks.Document:
    """The document with each statement as `say` puts it.

    Code stays as it is, but a whole cell loses its magic: what is left is what a file holds.

    Args:
        document: what to say.
        say: one statement in other words.
    """
    return tuple(said for block in document for said in _reworded(block, say))


def _reworded(block: blocks.Block, say: Say) -> Iterator[blocks.Block]:
    match block:
        case blocks.Line() | blocks.Heading() | blocks.Text():
            yield replace(block, text=say(block.text))
        case blocks.Items():
            yield replace(block, items=tuple(map(say, block.items)))
        case blocks.Table():
            rows = tuple(tuple(map(say, row)) for row in block.rows)
            header = tuple(map(say, block.header))
            yield replace(block, caption=say(block.caption), header=header, rows=rows)
        case blocks.Details():
            yield replace(block, title=say(block.title), blocks=reworded(block.blocks, say))
        case blocks.Markdown():
            yield from reworded(parse(block.text), say)
        case blocks.Code() if block.text.startswith("%%"):
            yield replace(block, text=block.text.partition("\n")[2])
        case _:
            yield block
