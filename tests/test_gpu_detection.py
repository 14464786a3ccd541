"""Detection of the GPU and of the installed packages, without importing torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from triton_magics.execution.local import gpu_detection


def machine(tmp_path: Path, *nodes: str) -> Path:
    for node in ("dev/null", *nodes):
        path = tmp_path / node
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path


def test_a_device_node_is_a_gpu(tmp_path: Path) -> None:
    assert gpu_detection.gpu_present(machine(tmp_path, "dev/nvidia3"), {})


@pytest.mark.parametrize("nodes", [(), ("dev/nvidiactl",), ("dev/dxg",)])
def test_without_a_device_node_there_is_none(tmp_path: Path, nodes: tuple[str, ...]) -> None:
    assert not gpu_detection.gpu_present(machine(tmp_path, *nodes), {})


def test_windows_lends_its_gpu_by_another_name(tmp_path: Path) -> None:
    assert gpu_detection.gpu_present(
        machine(tmp_path, "dev/dxg", "usr/lib/wsl/lib/libcuda.so.1"), {}
    )


@pytest.mark.parametrize(
    ("visible", "present"),
    [
        ("", False),
        ("-1", False),
        (" -1,0", False),
        ("NoDevFiles", False),
        ("0", True),
        ("1,0", True),
    ],
)
def test_cuda_visible_devices_may_hide_it(tmp_path: Path, visible: str, present: bool) -> None:
    root = machine(tmp_path, "dev/nvidia0")
    assert gpu_detection.gpu_present(root, {"CUDA_VISIBLE_DEVICES": visible}) is present


@pytest.mark.parametrize(("helper", "present"), [("/usr/bin/nvidia-modprobe", True), (None, False)])
def test_a_driver_that_can_create_device_nodes_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, helper: str | None, present: bool
) -> None:
    monkeypatch.setattr("shutil.which", lambda _: helper)
    root = machine(tmp_path, "proc/driver/nvidia/gpus/0000:01:00.0/information")
    assert gpu_detection.gpu_present(root, {}) is present


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("cuda: Optional[str] = None", "interpreter"),
        ("cuda = None", "interpreter"),
        ("cuda: Optional[str] = '13.0'", "gpu"),
    ],
)
def test_a_torch_without_cuda_selects_the_interpreter(tmp_path: Path, line: str, kind: str) -> None:
    (tmp_path / "version.py").write_text(f"__version__ = '2'\n{line}\nhip = None\n")
    assert gpu_detection.detect(lambda: True, lambda _: tmp_path) == kind
    assert gpu_detection.detect(lambda: False, lambda _: tmp_path) == "interpreter"


def test_a_torch_that_says_nothing_is_taken_to_use_the_gpu(tmp_path: Path) -> None:
    assert gpu_detection.detect(lambda: True, lambda _: tmp_path) == "gpu"


def test_what_is_missing_is_named_with_what_to_install() -> None:
    everything_but = {"torch": None, "triton": None}
    message = gpu_detection.missing(lambda name: everything_but.get(name, name))
    assert message is not None
    assert message.startswith("torch and triton are not installed")
    assert message.endswith("pip install 'triton-magics[kernels]'")
    assert gpu_detection.missing(lambda name: name) is None


def test_the_driver_names_the_gpu(tmp_path: Path) -> None:
    info = machine(tmp_path, "proc/driver/nvidia/gpus/0000:01:00.0/information")
    (info / "proc/driver/nvidia/gpus/0000:01:00.0/information").write_text(
        "Model: \t\t NVIDIA H200\nIRQ:   16\nGPU UUID: \t GPU-1a2b\nVideo BIOS: 96\n"
    )
    (info / "proc/driver/nvidia/version").write_text(
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.82.07  Wed Aug 27\nGCC version: 13\n"
    )
    assert gpu_detection.gpus_from_proc(info)[0] == gpu_detection.Gpu(
        "NVIDIA H200", driver="580.82.07", uuid="GPU-1a2b"
    )


def test_without_a_driver_there_is_nothing_to_name(tmp_path: Path) -> None:
    assert gpu_detection.gpus_from_proc(tmp_path) == ()


def test_the_engine_imports_neither_torch_nor_triton() -> None:
    code = (
        "import sys; from triton_magics.execution import LocalExecutor;"
        "LocalExecutor().state();"
        "print(sorted({'torch', 'triton', 'numpy', 'IPython'} & set(sys.modules)))"
    )
    root = str(Path(__file__).parents[1])
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=True
    )
    assert ran.stdout == "[]\n"
