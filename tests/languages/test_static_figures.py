"""Occupancy, pretending, single calls, descriptions, locks, errors in words."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from triton.runtime import cache

from tests.harness.kit import CPU, KERNELS, Recorder, version_of
from triton_magics.execution.job_answers import OpDescription
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import DescribeJob, RunJob
from triton_magics.harness.correctness import describe_job, run_job
from triton_magics.harness.load import UserFault, compile_cache
from triton_magics.harness.process.fake_gpu import fake_gpu
from triton_magics.harness.process.gpu_lock import gpu_lock, lock_path
from triton_magics.languages.kernel_compiler import Target
from triton_magics.languages.occupancy import occupancy, waves
from triton_magics.languages.triton.child import triton_process
from triton_magics.languages.triton.child.error_hints import corrected_line, hint_for
from triton_magics.languages.triton.child.static_figures import resources
from triton_magics.model import RunResult, Status


@pytest.mark.parametrize(
    ("registers", "num_warps", "shared", "percent", "limiter"),
    [
        (32, 8, 0, 100, "nothing"),
        (34, 8, 0, 75, "registers"),
        (255, 4, 0, 12.5, "registers"),
        (32, 4, 100_000, 12.5, "shared memory"),
        (32, 8, 245_760, 0, "shared memory"),
        (32, 1, 0, 50, "blocks"),
    ],
)
def test_occupancy_on_sm_90(
    registers: int, num_warps: int, shared: int, percent: float, limiter: str
) -> None:
    result = occupancy(90, registers=registers, num_warps=num_warps, shared_bytes=shared)
    assert result == (percent, limiter)


@pytest.mark.parametrize(
    ("registers", "num_warps", "blocks", "expected"),
    [(32, 8, 8 * 132, 1.0), (32, 8, 4096, 4096 / 1056), (34, 8, 6 * 132 + 66, 6.5 / 6)],
)
def test_waves_are_grids_over_what_fits_at_once(
    registers: int, num_warps: int, blocks: int, expected: float
) -> None:
    observed = occupancy(90, registers=registers, num_warps=num_warps, shared_bytes=0)
    assert observed is not None
    result = waves(90, observed, blocks=blocks, num_warps=num_warps, sms=132)
    assert result == pytest.approx(expected)


@pytest.mark.parametrize(
    ("capability", "measured_sms", "expected"),
    [(90, None, 132), (80, None, 108), (89, None, None), (89, 58, 58), (120, None, None)],
)
def test_waves_count_the_sms_of_the_target_or_none(
    capability: int, measured_sms: int | None, expected: int | None
) -> None:
    target = Target(capability, measured_sms)
    assert target.sm_count == expected
    figures = resources(
        SimpleNamespace(name="kernel", num_warps=4, shared=0), target=capability, grid=(4096,),
        size="large", sms=target.sm_count, registers=32, spill_bytes=0,
    )  # fmt: skip
    assert (figures.sms, figures.waves is None) == (expected, expected is None)


def test_a_block_that_does_not_fit_makes_no_waves() -> None:
    observed = occupancy(90, registers=32, num_warps=8, shared_bytes=245_760)
    assert observed is not None
    assert waves(90, observed, blocks=10, num_warps=8, sms=132) is None


def test_occupancy_of_an_unknown_target_is_not_guessed() -> None:
    assert occupancy(42, registers=32, num_warps=4, shared_bytes=0) is None


def test_while_we_pretend_a_cpu_tensor_passes_for_one_on_the_gpu() -> None:
    x = torch.ones(3)
    with fake_gpu(CPU):
        assert x.is_cuda
        assert x.device.type == "cuda"
        results = [
            torch.empty(3, device="cuda"),
            torch.zeros_like(x, device=x.device),
            x.to("cuda:0"),
            x.cuda(),
        ]
        assert torch.cuda.is_available()
        assert torch.cuda.get_device_properties(0).multi_processor_count == 132
        assert torch.cuda.get_device_capability() == (9, 0)
        assert torch.cuda.current_stream(x.device).cuda_stream == 0
    assert not x.is_cuda
    assert [t.device.type for t in results] == ["cpu"] * 4
    assert torch.cuda.is_available() is False


def runs(**changes: object) -> RunResult:
    path = KERNELS / "softmax_right.py"
    arguments = {"op": OpRef(name="softmax"), "version": version_of(path, "softmax"), **changes}
    answer, _ = run_job.run(RunJob(**arguments), Recorder())
    assert isinstance(answer, RunResult)
    return answer


def test_a_run_shows_shape_dtype_and_range_of_both_calls() -> None:
    result = runs(shape=(7, 13))
    (out,) = result.outputs
    assert (out.shape, out.dtype, out.n_nan) == ((7, 13), "float32", 0)
    assert out.mean == pytest.approx(1 / 13)
    assert out.min is not None
    assert 0 < out.min < 1 / 13
    assert result.first_call_ms is not None
    assert result.second_call_ms is not None


def test_a_run_takes_an_expression_for_its_inputs() -> None:
    result = runs(inputs="torch.zeros(2, 4, device='cuda')")
    assert result.outputs[0].shape == (2, 4)
    assert (result.outputs[0].min, result.outputs[0].max) == (0.25, 0.25)
    with pytest.raises(UserFault, match="--inputs: NameError"):
        runs(inputs="torsch.zeros(2)")


def test_a_run_that_raises_says_where() -> None:
    path = KERNELS / "divides_by_zero.py"
    answer, _ = run_job.run(
        RunJob(op=OpRef(name="softmax"), version=version_of(path, "softmax")), Recorder()
    )
    assert isinstance(answer, RunResult)
    assert answer.status is Status.RUNTIME_ERROR
    assert answer.error is not None
    assert "1 // 0" in str(answer.error.code)


OWN = '''\
"""Twice x."""
import torch

SIZES = {"small": (8,), "medium": (16,), "large": (32,)}
SHAPES = ((3,), (7,))

def make_inputs(shape, dtype, device, generator):
    return torch.randn(shape, dtype=dtype, device=device, generator=generator)

def reference(x):
    return 2 * x
'''


def describe(tmp_path: Path, source: str) -> OpDescription:
    path = tmp_path / "reference.py"
    path.write_text(source)
    answer, _ = describe_job.run(DescribeJob(op=OpRef.own("twice", path.read_text())), Recorder())
    assert isinstance(answer, OpDescription)
    return answer


def test_an_own_op_says_what_it_declares(tmp_path: Path) -> None:
    result = describe(tmp_path, OWN)
    assert result.sizes["large"] == (32,)
    assert result.dtypes == ("float32",)
    assert (result.signature, result.outputs, result.doc) == ("(x)", ("[3] float32",), "Twice x.")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("return 2 * x", "raise KeyError('lost')", "the reference raised KeyError: 'lost'"),
        ("return 2 * x", "pass", "the reference returns nothing"),
        ("return 2 * x", "return x + torch.rand(())", "different outputs for the same inputs"),
        ("return 2 * x", ("return 2 * x.float().half().float() if x.dtype != torch.float64 "
         "else x.no_such"), "must also work in float64"),
        ("return 2 * x", "return (2 * x.float()).to(x.dtype)", "computes in float32 even where"),
        ("def reference", "def preference", "reference"),
    ],
)  # fmt: skip
def test_a_reference_that_can_not_be_used_is_the_users_to_mend(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    with pytest.raises(UserFault, match=words):
        describe(tmp_path, OWN.replace(old, new))


def test_incompatible_triton_and_numpy_name_the_repair() -> None:
    for fine in [("3.7.1", "2.4.6"), ("3.6.0", "2.3.5")]:
        triton_process.check_interpreter(*fine)
    with pytest.raises(RuntimeError, match="numpy<2.4"):
        triton_process.check_interpreter("3.6.0", "2.4.0")


@pytest.mark.parametrize(
    ("message", "hint"),
    [
        ("arange's range must be a power of 2", "next_power_of_2"),
        ("CUDA error: an illegal memory access was encountered", "masks"),
        ("out of resource: shared memory, Required: 300000", "smaller blocks"),
        ("nothing known", None),
    ],
)
def test_common_messages_have_a_hint(message: str, hint: str | None) -> None:
    result = hint_for(message)
    assert result is None if hint is None else hint in str(result)


HOLD = """
import sys
from triton_magics.harness.process.gpu_lock import gpu_lock
with gpu_lock(sys.argv[1], exclusive=True, purpose="timing softmax", on_wait=print):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_waiting_for_a_timing_names_the_lock_holder() -> None:
    uuid = f"test-{os.getpid()}"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, uuid], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdin is not None
    try:
        assert holder.stdout.readline().strip() == "held"
        messages: list[str] = []

        def waiting(sentence: str) -> None:
            messages.append(sentence)
            holder.stdin.close()

        with gpu_lock(uuid, exclusive=False, purpose="validating", on_wait=waiting):
            assert holder.wait(60) == 0
        assert f"held by process {holder.pid}, timing softmax" in messages[0]
    finally:
        holder.kill()
        holder.stdout.close()
        lock_path(uuid).unlink()


def test_a_compiled_entry_is_published_with_valid_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = version_of(KERNELS / "sum_right.py", "sum")
    monkeypatch.setenv("TRITON_MAGICS_CACHE", str(tmp_path / "shared"))
    first, second = tmp_path / "first", tmp_path / "second"
    monkeypatch.setenv("TRITON_CACHE_DIR", str(first))
    with compile_cache((ref,)):
        written = cache.FileCacheManager("WHOLE")
        files = {"kernel.cubin": written.put(b"code", "kernel.cubin")}
        written.put_group("kernel.json", files)
        cache.FileCacheManager("HALF").put(b"code", "kernel.cubin")
    shutil.rmtree(first)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(second))
    with compile_cache((ref,)):
        result = cache.FileCacheManager("WHOLE").get_group("kernel.json")
        assert result == {"kernel.cubin": str(second / "WHOLE" / "kernel.cubin")}
        assert Path(result["kernel.cubin"]).read_bytes() == b"code"
        assert not (second / "HALF").exists()
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "third"))
    with compile_cache((ref,)):  # what the second was given is its own
        result = cache.FileCacheManager("WHOLE").get_group("kernel.json")
        assert result == {"kernel.cubin": str(tmp_path / "third" / "WHOLE" / "kernel.cubin")}
    with compile_cache((ref,)), monkeypatch.context() as set_to:
        set_to.setenv("TRITON_CACHE_DIR", str(second))
        result = cache.FileCacheManager("WHOLE").get_group("kernel.json")
        assert result == {"kernel.cubin": str(second / "WHOLE" / "kernel.cubin")}
    (stored,) = (tmp_path / "shared").rglob("WHOLE")
    os.utime(stored.parent, (0, 0))
    with compile_cache((ref,)):
        assert stored.parent.stat().st_mtime > 0  # what nobody uses is swept


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"child_paths": 7}', "\x00\x00\x00"])
def test_an_unreadable_cache_entry_is_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    ref = version_of(KERNELS / "sum_right.py", "sum")
    monkeypatch.setenv("TRITON_MAGICS_CACHE", str(tmp_path / "shared"))

    def has_compiled(child: str) -> bool:
        """Return True if a child had to compile it."""
        monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / child))
        with compile_cache((ref,)):
            manager = cache.FileCacheManager("ENTRY")
            if manager.get_group("kernel.json"):
                return False
            assert not manager.has_file("kernel.cubin")
            files = {"kernel.cubin": manager.put(b"code", "kernel.cubin")}
            manager.put_group("kernel.json", files)
        return True

    assert has_compiled("first")
    (group,) = (tmp_path / "shared").rglob("__grp__kernel.json")
    group.write_text(text)
    assert [has_compiled("second"), has_compiled("third")] == [True, False]


def test_who_writes_into_its_launcher_changes_no_one_elses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = version_of(KERNELS / "sum_right.py", "sum")
    monkeypatch.setenv("TRITON_MAGICS_CACHE", str(tmp_path / "shared"))
    for child in ("first", "second", "third"):
        monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / child))
        with compile_cache((ref,)):
            own = tmp_path / child / "LAUNCHER" / "launcher.so"
            if child == "first":
                cache.FileCacheManager("LAUNCHER").put(b"code", "launcher.so")
            assert own.read_bytes() == b"code"
            if child != "first":
                own.write_bytes(b"other code")
        if child == "first":
            own.write_bytes(b"other code")


def test_an_entry_on_another_disk_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(file: str, to: str) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", link)
    ref = version_of(KERNELS / "sum_right.py", "sum")
    monkeypatch.setenv("TRITON_MAGICS_CACHE", str(tmp_path / "shared"))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "first"))
    with compile_cache((ref,)):
        manager = cache.FileCacheManager("ENTRY")
        manager.put_group("kernel.json", {"kernel.cubin": manager.put(b"code", "kernel.cubin")})
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "second"))
    with compile_cache((ref,)):
        assert (tmp_path / "second" / "ENTRY" / "kernel.cubin").read_bytes() == b"code"


def test_a_misspelt_name_of_the_language_is_corrected() -> None:
    import triton.language  # noqa: F401 (a worker has imported it)

    message = """AttributeError("module 'triton.language' has no attribute 'expp'")"""
    assert str(hint_for(message)).startswith("did you mean tl.exp? The name is not in this Triton")
    assert corrected_line(message, "y = tl.expp(x) + expp") == "y = tl.exp(x) + expp"
    assert corrected_line(message, "y = f(x)") is None
    unknown = message.replace("expp", "zzzzqqq")
    assert "did you mean" not in str(hint_for(unknown))
    assert corrected_line(unknown, "y = tl.zzzzqqq(x)") is None
