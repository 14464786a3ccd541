"""Reference material for writing kernels: checked, searchable, offline."""

from triton_magics.knowledge.finder import language_names, search, topics
from triton_magics.knowledge.folder import Knowledge, load, shipped, sound_kernels
from triton_magics.knowledge.op_files import Hint, declared_facts
from triton_magics.knowledge.own_folder import NOTHING, OwnKnowledge, load_own
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
from triton_magics.knowledge.torch_source import (
    documentation_url,
    find_sources,
    torch_function,
    torch_version,
)

__all__ = [
    "NOTHING",
    "Hint",
    "Knowledge",
    "OwnKnowledge",
    "aliases",
    "backward_facts",
    "canonical",
    "declared_facts",
    "documentation_url",
    "facts",
    "find_sources",
    "forward_of",
    "language_names",
    "load",
    "load_own",
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
    "torch_function",
    "torch_version",
    "version_hint",
]
