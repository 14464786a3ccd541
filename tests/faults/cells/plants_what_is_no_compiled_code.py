"""Rubbish where compiled kernels are kept.

class: damage
status: any
"""

import os
from pathlib import Path


def triton_relu(x):
    cache = Path(os.environ["TRITON_MAGICS_CACHE"]) / "triton_magics"
    for name in ("shared/launchers", "compiled/" + "x" * 24):
        folder = cache / name / "entry"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "__grp__x.json").write_text("rubbish")
    return x
