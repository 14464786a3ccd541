"""Compiling ahead leaves a version as it was."""

from __future__ import annotations

import functools
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest
import torch

from tests.harness.test_op_kernels import version_ref
from triton_magics import operators
from triton_magics.execution.job_refs import OpRef
from triton_magics.harness.compile_ahead import (
    AheadCompilation,
    Target,
    compile_form,
    compile_here,
    input_forms,
    restore_modules,
)
from triton_magics.harness.load import load_version
from triton_magics.model import Case

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
    form = ((3, 5), "float32", (), ())
    compile_form(operators.load("sum"), version, form)
    assert version.module.counter.is_meta  # what would be an illegal address on a GPU
    vars(version.module).update(counter=None)
    version.module.buffers.clear()
    with restore_modules(version.module):
        compile_form(operators.load("sum"), version, form)
        assert version.module.counter.is_meta
    assert (version.module.counter, version.module.buffers) == (None, {})
    assert torch.equal(version.call(torch.ones(2, 3)), torch.full((2,), 3.0))


def test_names_containers_and_caches_stay_the_same_objects() -> None:
    module = ModuleType("made_up")
    module.names, module.items, module.table = [1], {2}, {3: 4}
    module.cached = functools.cache(lambda n: object())
    originals = (module.names, module.items, module.table)
    with restore_modules(module):
        module.names.append(5)
        module.items.clear()
        module.table = {}
        module.new = 1
        remembered = module.cached(1)
    assert originals == ([1], {2}, {3: 4})
    assert module.table is originals[2]
    assert not hasattr(module, "new")
    assert module.cached(1) is not remembered


def test_each_value_of_a_parameter_is_compiled_ahead(tmp_path: Path) -> None:
    source = "seen = []\n\ndef triton_mha(q, k, v, is_causal=False):\n    seen.append(is_causal)\n"
    version = load_version(version_ref(tmp_path, "mha", "v1", source))
    cases = [
        Case(shape=(1, 2, 33, 16), dtype="float32", scalars=(("is_causal", value),), seed=seed)
        for seed in (1, 2)
        for value in (True, False)
    ]
    forms = input_forms(cases)
    assert len(forms) == 2
    for form in forms:
        compile_form(operators.load("mha"), version, form)
    assert version.module.seen == [True, False]


@pytest.mark.parametrize("raised", ["ValueError", "KeyboardInterrupt", "SystemExit"])
def test_an_error_during_compile_ahead_is_left_to_the_call(tmp_path: Path, raised: str) -> None:
    source = f"def triton_sum(x):\n    raise {raised}('mine')\n"
    ref = version_ref(tmp_path, "sum", "v1", source)
    forms = input_forms([Case(shape=(3, 5), dtype="float32", seed=1)])
    ahead = AheadCompilation(OpRef(name="sum"), ref, forms, Target(90))
    version = load_version(ref)
    ahead.wait(partial(compile_here, operators.load("sum"), version))
    assert ahead.is_finished(forms[0], within_s=0.0)
    with pytest.raises(BaseException, match="mine"):
        version.call(torch.ones(2, 3))
