"""Tests of the settings that a call must leave as they were."""

from __future__ import annotations

import logging
import os
import random
import reprlib
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.harness.kit import KERNELS, job_for, run_cases
from triton_magics.execution.job_refs import OpRef
from triton_magics.harness.correctness import guarded_call
from triton_magics.harness.correctness.call_record import CallOptions
from triton_magics.harness.correctness.guarded_call import LocalCalls
from triton_magics.harness.correctness.left_behind import LeftBehind, settings
from triton_magics.harness.correctness.standard_state import read_state
from triton_magics.harness.load import load_version
from triton_magics.model import Case


def test_only_a_lowered_recursion_limit_is_a_fault() -> None:
    before, settings = sys.getrecursionlimit(), LeftBehind()
    sys.setrecursionlimit(before + 1000)
    assert settings.restore() is None
    assert sys.getrecursionlimit() == before
    sys.setrecursionlimit(before - 1)
    message = settings.restore()
    assert message == (
        f"the version left the recursion limit changed: {before} before, {before - 1} after"
    )
    assert sys.getrecursionlimit() == before


def test_a_tool_of_torch_in_the_environment_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TRITON_PTXAS_PATH", "TRITON_ALWAYS_COMPILE"):  # put back at the end
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    settings = LeftBehind()
    os.environ["TRITON_PTXAS_PATH"] = str(Path(torch.__file__).parent / "bin" / "ptxas")
    assert settings.restore() is None
    os.environ["TRITON_ALWAYS_COMPILE"] = "1"
    assert "TRITON_ALWAYS_COMPILE" in str(settings.restore())


def test_a_default_dtype_is_put_back_and_named() -> None:
    settings = LeftBehind()
    torch.set_default_dtype(torch.float64)
    assert "default dtype" in str(settings.restore())
    assert torch.get_default_dtype() == torch.float32


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (
            lambda: torch.set_printoptions(precision=8),
            "the version left `precision` of `torch.set_printoptions()` changed: 4 before, 8 after",
        ),
        (
            lambda: torch.set_printoptions(sci_mode=True),
            "the version left `sci_mode` of `torch.set_printoptions()` changed",
        ),
        (
            lambda: torch.hub.set_dir("elsewhere"),
            "the version left `_hub_dir` of `torch.hub.set_dir()` changed",
        ),
    ],
)
def test_what_a_writer_without_a_reader_writes_is_a_setting(
    write: Callable[[], None], message: str
) -> None:
    settings = LeftBehind()
    write()
    assert settings.restore() == message
    assert settings.restore() is None


SEEDING: dict[str, Callable[[], Any]] = {
    "Python's": lambda: random.seed(1),
    "torch's": lambda: torch.manual_seed(torch.initial_seed()),
    "NumPy's": lambda: np.random.seed(1),
}


@pytest.mark.parametrize("name", SEEDING)
def test_a_generator_that_every_call_seeds_is_named(name: str) -> None:
    settings = LeftBehind()
    assert _message_after(SEEDING[name], settings) is None
    message = _message_after(SEEDING[name], settings)
    assert message == f"every call seeds {name} random generator again"


def test_a_call_that_draws_seeds_nothing() -> None:
    settings = LeftBehind()
    for _ in range(3):
        assert _message_after(lambda: torch.rand(2), settings) is None
        assert _message_after(lambda: None, settings) is None


def _message_after(call: Callable[[], Any], settings: LeftBehind | None = None) -> str | None:
    settings = settings or LeftBehind()
    settings.prepare()
    call()
    return settings.restore()


def test_another_seed_is_named_and_put_back() -> None:
    before, settings = torch.initial_seed(), LeftBehind()
    torch.manual_seed(before ^ 1)
    assert "the seed of torch's generator" in str(settings.restore())
    assert torch.initial_seed() == before


def test_the_monitor_of_a_progress_bar_is_no_unfinished_work(tmp_path: Path) -> None:
    pytest.importorskip("tqdm")
    source = (KERNELS / "softmax_right.py").read_text()
    line = "    return out.view(x.shape)"
    assert source.count(line) == 1
    path = tmp_path / "kernel.py"
    path.write_text(source.replace(line, f"    tqdm.tqdm(total=1, disable=False)\n{line}"))
    path.write_text(f"import tqdm\n{path.read_text()}")
    (result,) = run_cases(path, Case(shape=(7, 13), dtype="float32", seed=1))
    assert result.status == "passed", result.reason


SWITCHES: dict[str, Callable[[], Any]] = {
    "torch.is_grad_enabled": lambda: torch.set_grad_enabled(False),
    "torch.is_warn_always_enabled": lambda: torch.set_warn_always(False),
    "torch._C._get_cudnn_benchmark": lambda: setattr(torch.backends.cudnn, "benchmark", False),
    "subnormal": lambda: torch.set_flush_denormal(True),
    "torch.autograd.is_multithreading_enabled": (
        lambda: torch.autograd.set_multithreading_enabled(True)
    ),
    "torch._C._get_flash_sdp_enabled": lambda: torch.backends.cuda.enable_flash_sdp(True),
}


@pytest.mark.parametrize("name", SWITCHES)
def test_a_switch_is_named_whatever_it_was_before(name: str) -> None:
    before = [setting.read() for setting in settings()]
    message = LeftBehind().find_overwritten(SWITCHES[name])
    assert name in str(message)
    assert [setting.read() for setting in settings()] == before


def test_a_call_that_restores_its_switches_leaves_nothing() -> None:
    def call() -> None:
        with torch.no_grad(), np.errstate(all="ignore"), torch.backends.cudnn.flags(enabled=False):
            sys.setrecursionlimit(sys.getrecursionlimit() + 1)

    assert LeftBehind().find_overwritten(call) is None
    assert LeftBehind().find_overwritten(lambda: 1 / 0) is None


@pytest.mark.parametrize("hidden", [False, True])
def test_a_call_with_turned_switches_changes_none(hidden: bool) -> None:
    with warnings.catch_warnings():
        warnings.resetwarnings()
        if hidden:
            warnings.simplefilter("ignore")
        before = [setting.read() for setting in settings()]
        left = LeftBehind()
        assert left.find_overwritten(lambda: None) is None
        assert left.restore() is None
        assert [setting.read() for setting in settings()] == before


def test_numpy_s_handling_of_errors_is_put_back_and_named() -> None:
    left = LeftBehind()
    np.seterr(all="raise")
    assert "numpy.geterr" in str(left.restore())
    assert "raise" not in np.geterr().values()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("logging.Logger.manager.disable", lambda: logging.disable(logging.WARNING)),
        ("logging.Logger.root.level", lambda: logging.root.setLevel(logging.CRITICAL)),
        ("reprlib.aRepr.maxlist", lambda: setattr(reprlib.aRepr, "maxlist", 2)),
        ("sys.dont_write_bytecode", lambda: setattr(sys, "dont_write_bytecode", None)),
    ],
)
def test_a_value_of_a_standard_module_is_put_back_and_named(
    name: str, change: Callable[[], Any]
) -> None:
    before, left = read_state(), LeftBehind()
    change()
    assert left.restore() == f"the version left values of Python's modules changed: {name}"
    assert read_state() == before


def test_a_value_that_a_first_use_sets_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)
    left = LeftBehind()
    tempfile.gettempdir()
    assert tempfile.tempdir
    assert left.restore() is None


def test_what_concurrent_compilation_leaves_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    version = load_version(
        job_for(KERNELS / "classes" / "leftovers" / "mean_warnings_caught.py").version
    )
    calls = LocalCalls(version, OpRef(name="mean"), torch.device("cpu"))
    with warnings.catch_warnings():
        # Two threads in `catch_warnings` may leave the filter of the one that ends last.
        leave_a_filter = lambda *_: warnings.simplefilter("ignore")  # noqa: E731
        monkeypatch.setattr(guarded_call, "compile_here", leave_a_filter)
        calls.compile_forms([((7, 13), "float32", (), ())])
        record = calls.call((torch.ones(7, 13),), (), CallOptions(guard=True))
    assert record.left_behind is None


def test_every_setting_takes_back_the_value_that_it_has() -> None:
    refused = {}
    for setting in settings():
        value = setting.read()
        try:
            setting.write(value)
        except Exception as error:  # noqa: BLE001 (of any library)
            refused[setting.name] = repr(error)
        assert setting.read() == value, setting.name
    # Once torch has computed in several threads, this one can't be changed by a version either.
    refused.pop("`torch._C.get_num_interop_threads()`", None)
    assert {name: error for name, error in refused.items() if "NoneType" not in error} == {}


def test_a_switch_of_two_values_is_put_back() -> None:
    switches = torch.backends.cuda.matmul
    before = switches.allow_fp16_reduced_precision_reduction
    left = LeftBehind()
    try:
        switches.allow_fp16_reduced_precision_reduction = not before
        left.discard()
        assert switches.allow_fp16_reduced_precision_reduction == before
        assert left.restore() is None
    finally:
        switches.allow_fp16_reduced_precision_reduction = before
