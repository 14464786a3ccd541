"""Writes notebooks/quickstart.ipynb without outputs; `make notebooks` executes it.

The notebook's text lives here, as cells in reading order, so that a change of it is a readable diff.
"""

from __future__ import annotations

from pathlib import Path

import nbformat

TARGET = Path(__file__).parent.parent / "notebooks" / "quickstart.ipynb"

INTRO = """\
# Softmax in four versions

A Triton kernel grows by iterating: write a version, check it, time it, look at the picture, write the
next one, choose, and leave a record that a reviewer can follow. This notebook takes softmax through
the whole loop. It runs on an NVIDIA GPU; without one, Triton's interpreter checks the numbers on the
CPU and the compiler still compiles every kernel for a GPU that is not there.

Every cell that starts with `%` or `%%triton` is one step. Kernels run in a process of their own:
whatever they do, this notebook survives it."""

LOOK = """\
## 1. Start the op

`%triton_op` shows the operation, its bounds and the techniques that fit, and starts its workflow.
`%triton_ref online softmax` and `%triton_template fused softmax v1` show more."""

BASELINE = """\
## 2. Write v1: one program per row

The direct translation. Program `row` loads a whole row into registers, subtracts the maximum (so that
`exp` can't overflow), exponentiates, divides by the sum and stores. The block must be a power of two
that holds the row, so lanes past the end are masked: they load minus infinity, which is neutral for
the maximum and becomes zero under `exp`.

The memory traffic is what it must be, every element read once and written once. Nothing else about
this version is tuned."""

V1 = """\
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, x_row_stride, out_row_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_row_stride + cols, mask=mask, other=-float("inf")).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=0))
    out = numerator / tl.sum(numerator, axis=0)
    tl.store(out_ptr + row * out_row_stride + cols, out, mask=mask)


def triton_softmax(x):
    if x.dim() == 0:
        raise ValueError("softmax needs at least one dimension")
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    BLOCK_SIZE = triton.next_power_of_2(n_cols)
    softmax_kernel[(n_rows,)](
        rows, out, rows.stride(0), out.stride(0), n_cols, BLOCK_SIZE=BLOCK_SIZE
    )
    return out.view(x.shape)
"""

RUN = """\
One call, to see that it does something at all: shapes, values, and how long the host waited for the
first call (which compiles) and the second."""

VALIDATE = """\
Is it right? `%triton_validate` compares against a float64 oracle on hostile inputs: shapes that are no
powers of two, transposed and strided layouts, large and tiny values, NaN and infinities, in every
dtype. Memory around every tensor is poisoned, so that a forgotten mask shows. Once more with every
Triton launch taken out, to prove that the kernels did the work."""

TIME = """\
And how fast? A first look; section 6 compares all versions with each other. (The budget keeps the
CPU's interpreter short; a GPU needs a fraction of a second.)"""

TILING = """\
## 3. Write v2: tiles, with an error to repair

A row that does not fit into registers must be taken in tiles. Online softmax keeps a running maximum
`m` and a running sum `s` of `exp(x - m)`; when a tile brings a larger maximum, the sum so far was
relative to the old one and must be rescaled by `exp(m_old - m_new)`.

The first attempt forgets that. It is right whenever one tile holds the row, and so at 256 and 1024
columns, two of the three sizes that a benchmark would try."""

V2_WRONG = """\
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, x_row_stride, out_row_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    x_ptr += row * x_row_stride
    out_ptr += row * out_row_stride
    m = -float("inf")
    s = 0.0
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        m_new = tl.maximum(m, tl.max(x, axis=0))
        safe = tl.where(m_new == -float("inf"), 0.0, m_new)  # until the first finite value
        s = s + tl.sum(tl.exp(x - safe), axis=0)
        m = m_new
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        mask = cols < n_cols
        x = tl.load(x_ptr + cols, mask=mask, other=-float("inf")).to(tl.float32)
        tl.store(out_ptr + cols, tl.exp(x - m) / s, mask=mask)


def triton_softmax(x):
    if x.dim() == 0:
        raise ValueError("softmax needs at least one dimension")
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    BLOCK_SIZE = min(triton.next_power_of_2(n_cols), 1024)
    softmax_kernel[(n_rows,)](
        rows, out, rows.stride(0), out.stride(0), n_cols, BLOCK_SIZE=BLOCK_SIZE
    )
    return out.view(x.shape)
"""

WRONG = """\
`--no-raise` lets the notebook go on; without it this cell fails, and so does Run All."""

REPAIR = """\
The rows longer than a tile are wrong, and by a factor that differs from row to row: a missing
rescaling looks like this. The repaired cell is attempt 2 of the same version; attempt 1 stays in the
record, with the reason why it was replaced."""

SHORT = """\
## 4. Write v3: several short rows per program

At 256 columns a program of v1 has a kilobyte to read, and four warps that share it. A two-dimensional
block gives a program several neighbouring rows, so that each warp has whole rows of its own and the
reduction needs no exchange between warps. Loads stay coalesced: neighbouring lanes read neighbouring
columns."""

V3 = """\
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(
    x_ptr, out_ptr, x_row_stride, out_row_stride, n_rows, n_cols,
    ROWS: tl.constexpr, BLOCK_SIZE: tl.constexpr,
):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
    x_ptrs = x_ptr + rows[:, None] * x_row_stride + cols[None, :]
    x = tl.load(x_ptrs, mask=mask, other=-float("inf")).to(tl.float32)
    # A row past the end is all minus infinity; zero keeps its exp away from NaN.
    peak = tl.max(x, axis=1)
    peak = tl.where(rows < n_rows, peak, 0.0)
    numerator = tl.exp(x - peak[:, None])
    total = tl.sum(numerator, axis=1)
    out = numerator / tl.where(rows < n_rows, total, 1.0)[:, None]
    tl.store(out_ptr + rows[:, None] * out_row_stride + cols[None, :], out, mask=mask)


def triton_softmax(x):
    if x.dim() == 0:
        raise ValueError("softmax needs at least one dimension")
    flat = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(flat)
    n_rows, n_cols = flat.shape
    BLOCK_SIZE = triton.next_power_of_2(n_cols)
    ROWS = max(1, min(4, 2048 // BLOCK_SIZE))
    softmax_kernel[(triton.cdiv(n_rows, ROWS),)](
        flat, out, flat.stride(0), out.stride(0), n_rows, n_cols,
        ROWS=ROWS, BLOCK_SIZE=BLOCK_SIZE, num_warps=4,
    )
    return out.view(x.shape)
"""

SWEEP = """\
How many warps suit it? `%triton_sweep` tries each value. On a GPU a cell of the heat map is a time;
without one it is registers and occupancy, as compiled."""

BOTH = """\
## 5. Write v4: a launch configuration for each row length

Short rows as in v3; a long row in one program with more warps, so that each lane holds few elements
and more loads are in flight. Rows beyond 16,384 columns fall back to the tiles of v2, which need two
reads but any length."""

V4 = """\
import torch
import triton
import triton.language as tl

MAX_IN_REGISTERS = 16384


@triton.jit
def rows_kernel(
    x_ptr, out_ptr, x_row_stride, out_row_stride, n_rows, n_cols,
    ROWS: tl.constexpr, BLOCK_SIZE: tl.constexpr,
):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK_SIZE)
    inside = rows < n_rows
    mask = inside[:, None] & (cols < n_cols)[None, :]
    x_ptrs = x_ptr + rows[:, None] * x_row_stride + cols[None, :]
    x = tl.load(x_ptrs, mask=mask, other=-float("inf")).to(tl.float32)
    peak = tl.where(inside, tl.max(x, axis=1), 0.0)
    numerator = tl.exp(x - peak[:, None])
    total = tl.where(inside, tl.sum(numerator, axis=1), 1.0)
    out = numerator / total[:, None]
    tl.store(out_ptr + rows[:, None] * out_row_stride + cols[None, :], out, mask=mask)


@triton.jit
def tiles_kernel(x_ptr, out_ptr, x_row_stride, out_row_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * x_row_stride
    out_ptr += row * out_row_stride
    m = -float("inf")
    s = 0.0
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        m_new = tl.maximum(m, tl.max(x, axis=0))
        safe = tl.where(m_new == -float("inf"), 0.0, m_new)  # until the first finite value
        s = s * tl.exp(m - safe) + tl.sum(tl.exp(x - safe), axis=0)
        m = m_new
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        mask = cols < n_cols
        x = tl.load(x_ptr + cols, mask=mask, other=-float("inf")).to(tl.float32)
        tl.store(out_ptr + cols, tl.exp(x - m) / s, mask=mask)


def triton_softmax(x):
    if x.dim() == 0:
        raise ValueError("softmax needs at least one dimension")
    flat = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(flat)
    n_rows, n_cols = flat.shape
    strides = (flat.stride(0), out.stride(0))
    if n_cols > MAX_IN_REGISTERS:
        tiles_kernel[(n_rows,)](flat, out, *strides, n_cols, BLOCK_SIZE=4096, num_warps=8)
        return out.view(x.shape)
    BLOCK_SIZE = triton.next_power_of_2(n_cols)
    ROWS = max(1, min(4, 2048 // BLOCK_SIZE))
    num_warps = 4 if BLOCK_SIZE <= 2048 else 8 if BLOCK_SIZE <= 8192 else 16
    rows_kernel[(triton.cdiv(n_rows, ROWS),)](
        flat, out, *strides, n_rows, n_cols,
        ROWS=ROWS, BLOCK_SIZE=BLOCK_SIZE, num_warps=num_warps,
    )
    return out.view(x.shape)
"""

BENCH = """\
## 6. Benchmark

Each round times every passed version and torch in random order, and torch once more as a control.
On a GPU the figure is the time on the GPU with cold caches, without the launch overhead. In the
interpreter the figures are CPU times: they rank nothing, and no speedup is shown."""

CHOOSE = """\
## 7. Choose the best version

The best version has the smallest final of one benchmark. Without GPU times it is provisional: the
newest version that passed."""

RECORD = """\
## 8. Export the log

The log has three forms for a review: a notebook that can be run again, Markdown, and an HTML page. `%triton_panel softmax` shows the same state live, beside the code."""


def cells() -> list[tuple[str, str]]:
    """Return kind and text of every cell."""

    def kernel(version: str, technique: str, source: str) -> tuple[str, str]:
        line = f'%%triton_kernel softmax {version} --technique "{technique}"'
        return ("code", f"{line}\n{source}".rstrip())

    repaired = V2_WRONG.replace(
        "s = s + tl.sum(tl.exp(x - safe), axis=0)",
        "s = s * tl.exp(m - safe) + tl.sum(tl.exp(x - safe), axis=0)",
    )
    return [
        ("markdown", INTRO),
        ("code", "%load_ext triton_magics"),
        ("markdown", LOOK),
        ("code", "%triton_op softmax"),
        ("markdown", BASELINE),
        kernel("v1", "one program, one row", V1),
        ("markdown", RUN),
        ("code", "%triton_run softmax v1"),
        ("markdown", VALIDATE),
        ("code", "%triton_validate softmax v1"),
        ("markdown", TIME),
        ("code", "%triton_bench softmax v1 --budget 10"),
        ("markdown", TILING),
        kernel("v2", "tiles with a running maximum and sum", V2_WRONG),
        ("markdown", WRONG),
        ("code", "%triton_validate softmax v2 --no-raise"),
        ("markdown", REPAIR),
        kernel("v2", "tiles with a running maximum and sum", repaired),
        ("code", "%triton_validate softmax v2"),
        ("code", "%triton_bench softmax v2 --budget 10"),
        ("markdown", SHORT),
        kernel("v3", "several short rows a program", V3),
        ("code", "%triton_validate softmax v3"),
        ("code", "%triton_bench softmax v3 --budget 10"),
        ("markdown", SWEEP),
        ("code", "%triton_sweep softmax v3 num_warps=1,2,4,8"),
        ("markdown", BOTH),
        kernel("v4", "rows a program and warps by row length", V4),
        ("code", "%triton_validate softmax v4"),
        ("markdown", BENCH),
        ("code", "%triton_bench softmax"),
        ("markdown", CHOOSE),
        ("code", "%triton_best softmax"),
        ("code", "%triton_status softmax"),
        ("markdown", RECORD),
        ("code", "%triton_log softmax"),
    ]


def make_notebook(name: str, texts: list[tuple[str, str]]) -> nbformat.NotebookNode:
    """Return a notebook without outputs.

    Args:
        name: begins the ids of its cells.
        texts: kind and text of each cell.
    """
    result = nbformat.v4.new_notebook(
        metadata={
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
    )
    for i, (kind, text) in enumerate(texts):
        new = nbformat.v4.new_markdown_cell if kind == "markdown" else nbformat.v4.new_code_cell
        result.cells.append(new(text, id=f"{name}-{i:02}"))
    nbformat.validate(result)
    return result


def notebook() -> nbformat.NotebookNode:
    """Return the quickstart without outputs."""
    return make_notebook("quickstart", cells())


if __name__ == "__main__":
    TARGET.parent.mkdir(exist_ok=True)
    nbformat.write(notebook(), TARGET)
