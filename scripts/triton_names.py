"""Tables of what each Triton version offers, and what changed between them.

    python scripts/triton_names.py FOLDER [FOLDER ...]    # unpacked wheels, or site-packages folders
    python scripts/triton_names.py                        # only write the page

Each folder's Triton is imported in a process of its own; its public names and their parameters go
into knowledge/triton_names.json under its version; knowledge/triton_versions.md is written from it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "knowledge"
NAMES = FOLDER / "triton_names.json"
PAGE = FOLDER / "triton_versions.md"
MODULES = ("triton", "triton.language", "triton.testing", "triton.tools.tensor_descriptor")
LIST = f"""
import importlib, inspect, json, types
import triton
found = {{}}
for module in {MODULES!r}:
    inside = importlib.import_module(module)
    for name in dir(inside):
        value = getattr(inside, name)
        if name.startswith("_") or isinstance(value, types.ModuleType):
            continue
        try:
            parameters = [p for p in inspect.signature(value).parameters if not p.startswith("_")]
        except (TypeError, ValueError):
            parameters = None
        found[f"{{module}}.{{name}}"] = parameters
print(json.dumps([triton.__version__, found]))
"""

Names = dict[str, list[str] | None]


def names_of(folder: str) -> tuple[str, Names]:
    """Return the version of the Triton in a folder, and its public names with their parameters."""
    env = {**os.environ, "PYTHONPATH": folder}
    env.pop("TRITON_INTERPRET", None)
    process = subprocess.run(
        [sys.executable, "-c", LIST], env=env, capture_output=True, text=True, check=True
    )
    version, names = json.loads(process.stdout)
    return version, names


def changes(tables: dict[str, Names]) -> str:
    """Return the page, from the tables of all versions."""
    versions = sorted(tables, key=lambda v: [int(n) for n in v.split(".")])
    words = [
        "# What changed between Triton's versions",
        "",
        f"Read off the packages {', '.join(versions)}. Every name in the other pages is in all of",
        "them.",
        "",
    ]
    for old, new in pairwise(versions):
        words += [f"- {old} to {new}:", *_between(tables[old], tables[new])]
    return "\n".join(words) + "\n"


def _between(old: Names, new: Names) -> list[str]:
    common = [name for name in new if name in old]
    more = [f"`{_short(n)}` takes `{p}`" for n in common for p in _added(old[n], new[n])]
    less = [f"`{_short(n)}` takes no `{p}`" for n in common for p in _added(new[n], old[n])]
    rows = {
        "new": [f"`{_short(n)}`" for n in new if n not in old],
        "gone": [f"`{_short(n)}`" for n in old if n not in new],
        "parameters": more + less,
    }
    lines = [f"  - {kind}: {', '.join(sorted(names))}." for kind, names in rows.items() if names]
    return lines or ["  - nothing that these pages speak of."]


def _added(old: list[str] | None, new: list[str] | None) -> list[str]:
    return [p for p in new if p not in old] if old is not None and new is not None else []


def _short(name: str) -> str:
    return name.replace("triton.language.", "tl.", 1)


def main(folders: list[str]) -> None:
    """Add the tables of the given folders, then write the page."""
    tables = json.loads(NAMES.read_text()) if NAMES.exists() else {}
    tables |= dict(names_of(folder) for folder in folders)
    ordered = {version: tables[version] for version in sorted(tables)}
    lines = ",\n".join(
        f' "{version}": {{\n'
        + ",\n".join(f"  {json.dumps(n)}: {json.dumps(p)}" for n, p in sorted(names.items()))
        + "\n }"
        for version, names in ordered.items()
    )
    NAMES.write_text("{\n" + lines + "\n}\n")
    PAGE.write_text(changes(ordered))


if __name__ == "__main__":
    main(sys.argv[1:])
