"""The interpreter made quicker gives what it gave."""

from __future__ import annotations

import numpy as np
import pytest
import triton.language as tl
from triton.runtime import interpreter

from triton_magics.worker import quicken


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interpreter as Triton ships it, put back afterwards."""
    for name in ("_patch_lang", "_get_np_dtype"):
        now = getattr(interpreter, name)
        monkeypatch.setattr(interpreter, name, getattr(now, "original", now))


@pytest.mark.usefixtures("fresh")
def test_dtypes_are_those_of_the_interpreter_and_a_second_time_changes_nothing() -> None:
    asked = (
        tl.float32, tl.float16, tl.int1, tl.int32, tl.uint64, tl.pointer_type(tl.float32),
        tl.block_type(tl.float16, [128]), tl.block_type(tl.pointer_type(tl.int8), [4, 4]),
    )  # fmt: skip
    before = [np.dtype(interpreter._get_np_dtype(t)) for t in asked]
    quicken.quicken()
    quick = interpreter._get_np_dtype
    assert [np.dtype(quick(t)) for t in asked * 2] == before * 2
    quicken.quicken()
    assert interpreter._get_np_dtype is quick
