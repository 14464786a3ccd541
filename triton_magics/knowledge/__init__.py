"""Reference material for writing kernels: checked, searchable, offline."""

from triton_magics.knowledge.finder import language_names, search, topics
from triton_magics.knowledge.folder import Knowledge, load, shipped, sound_kernels
from triton_magics.knowledge.op_files import Hint
from triton_magics.knowledge.tables import (
    aliases,
    backward_facts,
    canonical,
    facts,
    forward_of,
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
    "backward_facts",
    "canonical",
    "facts",
    "forward_of",
    "language_names",
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
