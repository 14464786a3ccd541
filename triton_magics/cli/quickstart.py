"""Copy the notebooks that the package ships."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from triton_magics.errors import BadValue, Unavailable

_PACKAGE = Path(__file__).parents[1]
_NOTEBOOKS = (_PACKAGE / "_notebooks", _PACKAGE.parent / "notebooks")


def run_quickstart(options: argparse.Namespace) -> int:
    """Copy the notebooks and print their paths."""
    copied = copy_notebooks(Path(options.folder), force=options.force)
    for path in copied:
        print(path)
    print(f"next: jupyter lab {copied[0]}")
    return 0


def copy_notebooks(folder: Path, *, force: bool = False) -> tuple[Path, ...]:
    """Copy the notebooks into a folder; return the copies, the quickstart first.

    Args:
        folder: created if missing.
        force: overwrite existing notebooks.

    Raises:
        BadValue: a notebook exists, without `force`; or the folder is not writable.
        Unavailable: this installation has no notebooks.
    """
    notebooks = _shipped_notebooks()
    if not notebooks:
        raise Unavailable("this installation has no notebooks; install triton-magics again")
    copies = [(path, folder / path.name) for path in notebooks]
    existing = [str(copy) for _, copy in copies if copy.exists()]
    if existing and not force:
        raise BadValue(f"already there: {', '.join(existing)}. --force overwrites")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, copy in copies:
            shutil.copyfile(path, copy)
    except OSError as error:
        raise BadValue(f"the notebooks can't be copied: {error}") from error
    return tuple(copy for _, copy in copies)


def _shipped_notebooks() -> list[Path]:
    """Return the notebooks of the wheel or the editable install, the quickstart first."""
    source = next((path for path in _NOTEBOOKS if path.is_dir()), _NOTEBOOKS[0])
    return sorted(source.glob("*.ipynb"), key=lambda path: (path.stem != "quickstart", path.name))
