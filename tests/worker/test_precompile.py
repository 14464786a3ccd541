"""Compiling ahead leaves a version as it was."""

from __future__ import annotations

import functools
from pathlib import Path
from types import ModuleType

import pytest
import torch

from tests.worker.test_op_kernels import version_ref
from triton_magics import ops
from triton_magics.engine.protocol import OpRef
from triton_magics.model import Case
from triton_magics.worker.load import load_version
from triton_magics.worker.precompile import Ahead, Target, compile_form, forms_of, unchanged

REMEMBERS = """\
import torch

buffers = {}
counter = None


def triton_sum(x):
    global counter
    if counter is None:
        counter = torch.zeros(1, device=x.device)
    if x.device not in buffers:
        buffers[x.device] = torch.zeros(1, device=x.device)
    return buffers[x.device] + counter + x.sum(-1)
"""


def test_a_workspace_cached_while_compiling_ahead_is_forgotten(tmp_path: Path) -> None:
    version = load_version(version_ref(tmp_path, "sum", "v1", REMEMBERS))
    form = ((3, 5), "float32")
    compile_form(ops.load("sum"), version, form)
    assert version.module.counter.is_meta  # what would be an illegal address on a GPU
    vars(version.module).update(counter=None)
    version.module.buffers.clear()
    with unchanged(version.module):
        compile_form(ops.load("sum"), version, form)
        assert version.module.counter.is_meta
    assert (version.module.counter, version.module.buffers) == (None, {})
    assert torch.equal(version.call(torch.ones(2, 3)), torch.full((2,), 3.0))


def test_names_containers_and_caches_are_as_before_and_stay_the_same_objects() -> None:
    module = ModuleType("made_up")
    module.names, module.seen, module.table = [1], {2}, {3: 4}
    module.known = functools.cache(lambda n: object())
    held = (module.names, module.seen, module.table)
    with unchanged(module):
        module.names.append(5)
        module.seen.clear()
        module.table = {}
        module.new = 1
        remembered = module.known(1)
    assert held == ([1], {2}, {3: 4})
    assert module.table is held[2]
    assert not hasattr(module, "new")
    assert module.known(1) is not remembered


@pytest.mark.parametrize("raised", ["ValueError", "KeyboardInterrupt", "SystemExit"])
def test_what_a_version_raises_while_it_is_compiled_ahead_is_left_to_its_real_call(
    tmp_path: Path, raised: str
) -> None:
    source = f"def triton_sum(x):\n    raise {raised}('mine')\n"
    ref = version_ref(tmp_path, "sum", "v1", source)
    forms = forms_of([Case(shape=(3, 5), dtype="float32", seed=1)])
    ahead = Ahead(OpRef(name="sum"), ref, forms, Target(90))
    ahead.wait(ops.load("sum"), version := load_version(ref))  # nobody stands by: in threads
    assert ahead.is_done(forms[0], within_s=0.0)
    with pytest.raises(BaseException, match="mine"):
        version.call(torch.ones(2, 3))
