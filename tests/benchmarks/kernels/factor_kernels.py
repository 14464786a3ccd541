"""Kernels that differ in one thing each, for `clock_factors.py`."""

import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@triton.jit
def store(out_ptr, BLOCK: tl.constexpr):
    """Each program stores a block."""
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + places, places.to(tl.float32))


@triton.jit
def arguments(out_ptr, values, BLOCK: tl.constexpr):
    """As `store`, with many arguments."""
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + places, places.to(tl.float32) + values[0])


@triton.jit
def code(out_ptr, N: tl.constexpr, BLOCK: tl.constexpr):
    """As `store`, with N times as many instructions in a row."""
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = places.to(tl.float32)
    for i in tl.static_range(N):
        x = x * 1.0001 + (0.37 + i)
    tl.store(out_ptr + places, x)


@triton.jit
def copy(in_ptr, out_ptr, BLOCK: tl.constexpr):
    """Copy a block."""
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + places, tl.load(in_ptr + places))


@triton.jit
def read(in_ptr, out_ptr, BLOCK: tl.constexpr):
    """Read a block and store its sum."""
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + tl.program_id(0), tl.sum(tl.load(in_ptr + places), axis=0))


@triton.jit
def atomic(out_ptr):
    """Add to one place."""
    tl.atomic_add(out_ptr, 1.0)


@gluon.jit
def shared(out_ptr, SIZE: gl.constexpr):
    """As `store`, by way of the first of SIZE floats of shared memory."""
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    plain: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    places = gl.arange(0, 128, layout=layout)
    memory = gl.allocate_shared_memory(gl.float32, [SIZE], plain)
    part = memory.slice(0, 128)
    part.store(places.to(gl.float32))
    for i in gl.static_range(4):
        gl.store(out_ptr + (gl.program_id(0) * 4 + i) * 128 + places, part.load(layout))
