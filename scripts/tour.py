"""Writes notebooks/tour.ipynb without outputs; `make notebooks` executes it.

The tour shows what the quickstart leaves out: a sweep's heat map, static figures, a difference, a
correction, plots, the profiler, the panel, a package to install.
"""

from __future__ import annotations

from pathlib import Path

import nbformat

from quickstart import V1, make_notebook

TARGET = Path(__file__).parent.parent / "notebooks" / "tour.ipynb"
TUNABLE = V1.replace("n_cols, BLOCK_SIZE=BLOCK_SIZE", "n_cols, BLOCK_SIZE=BLOCK_SIZE, num_warps=4")
BROKEN = TUNABLE.replace(', other=-float("inf")', "")

INTRO = """\
# A tour of the tools

The [quickstart](quickstart.ipynb) writes four versions of softmax. This notebook takes one version
and shows the tools around it. Without a GPU the times are left out, and each tool shows what it
knows without them."""

BREAK = """\
## 1. A wrong version, and its correction

The load has no `other=`, so lanes past the end of a row hold anything. The verdict names the line.
`%triton_fix` gives the code with the corrected line; in JupyterLab it replaces its own cell by the
version."""

RIGHT = """\
## 2. The right version, and what changed

The same cell with the corrected line is attempt 2. `%triton_diff` compares two attempts or two
versions, with their verdicts and times."""

INSPECT = """\
## 3. Static figures

`%triton_inspect` compiles for a target, here or elsewhere: registers, shared memory, occupancy, the
widths of loads and stores, waves."""

SWEEP = """\
## 4. A grid of settings

`%triton_sweep` turns constants and launch options. On a GPU each cell of the heat map is a time;
without one it is registers and occupancy. The setting is a literal at the launch."""

TIME = """\
## 5. Times and their pictures

On a GPU the picture compares versions, torch and torch.compile, and shows each one's share of the
roofline. Without one, interpreter times rank nothing."""

PROFILE = """\
## 6. What limits it

`%triton_profile` reads the GPU's counters with Nsight Compute. Where it can't, it says why and names
the next best step."""

PANEL = """\
## 7. The panel

`%triton_panel softmax --dock` opens it beside the notebook: versions, plots, references, log,
devices. A saved notebook keeps this line of it."""

NOTE = """\
## 8. Notes, the log, a package

A note is part of the log that a reviewer reads. `--install` writes a package that needs neither this
notebook nor triton_magics."""


def cells() -> list[tuple[str, str]]:
    """Return kind and text of each cell."""
    return [
        ("markdown", INTRO),
        ("code", "%load_ext triton_magics"),
        ("code", "%triton_op softmax"),
        ("markdown", BREAK),
        ("code", f"%%triton_kernel softmax v1\n{BROKEN}"),
        ("code", "%triton_validate softmax v1 --quick --no-raise"),
        ("code", "%triton_fix softmax v1"),
        ("markdown", RIGHT),
        ("code", f"%%triton_kernel softmax v1\n{TUNABLE}"),
        ("code", "%triton_validate softmax v1"),
        ("code", "%triton_diff softmax v1:1 v1:2"),
        ("markdown", INSPECT),
        ("code", "%triton_inspect softmax v1"),
        ("markdown", SWEEP),
        ("code", "%triton_sweep softmax v1 num_warps=1,2,4,8,16"),
        ("markdown", TIME),
        ("code", "%triton_bench softmax v1 --against torch.compile"),
        ("code", "%triton_plot softmax runs"),
        ("markdown", PROFILE),
        ("code", "%triton_profile softmax v1 --no-raise"),
        ("markdown", PANEL),
        ("code", "%triton_panel softmax"),
        ("markdown", NOTE),
        ("code", "%%triton_note softmax v1\nOne program takes one row; rows are short."),
        ("code", "%triton_best softmax --install"),
        ("code", "%triton_log softmax"),
    ]


if __name__ == "__main__":
    nbformat.write(make_notebook("tour", cells()), TARGET)
