"""What there is to read before and while a kernel is written: checked, searched, offline."""

from triton_magics.knowledge.finder import search, topics
from triton_magics.knowledge.folder import Hint, Knowledge, load, shipped, sound_kernels
from triton_magics.knowledge.tables import (
    aliases,
    canonical,
    facts,
    mistake_for,
    mistakes,
    op_names,
    patterns,
    technique,
    techniques_for,
    template,
    version_hint,
)

__all__ = [
    "Hint",
    "Knowledge",
    "aliases",
    "canonical",
    "facts",
    "load",
    "mistake_for",
    "mistakes",
    "op_names",
    "patterns",
    "search",
    "shipped",
    "sound_kernels",
    "technique",
    "techniques_for",
    "template",
    "topics",
    "version_hint",
]
