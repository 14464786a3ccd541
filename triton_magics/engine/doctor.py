"""What kernels need of this machine: looked at without torch and without touching the GPU.

Each function looks at one thing and returns what it found. `Machine` is what they look at, so that
a test can hand them another one.
"""

from __future__ import annotations

import fcntl
import importlib.metadata
import importlib.util
import math
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from triton_magics.config import LOCKS, cache_dir
from triton_magics.engine import gpu
from triton_magics.engine.environment import memory_for_a_worker
from triton_magics.model import Finding, OpFacts

GIB = 2**30
# The oldest driver that runs CUDA's major versions: NVIDIA, CUDA compatibility, table 2.
DRIVERS = {13: 580, 12: 525, 11: 450}
MIN_TRITON = (3, 6)
WORKER = b"triton_magics.worker\0"  # in the command of each worker and of its zygote
FREE_DISK_GIB = 2
USABLE = 0.9  # of a GPU's memory: the context and the screen take the rest
_CUDA = re.compile(r"^cuda\b.*=\s*['\"](\d+)", re.MULTILINE)


def _package(name: str) -> Path | None:
    spec = importlib.util.find_spec(name)
    return Path(spec.origin).parent if spec and spec.origin else None


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


@dataclass(frozen=True)
class Machine:
    """What is looked at.

    Attributes:
        root: where /dev, /proc and /sys are.
        env: the environment of a worker.
        gpu: what the driver tells of the first GPU.
        package: the folder of an installed package.
        version: its version.
        cache: where compiled kernels are kept.
        locks: where the locks of the GPUs are.
        own: processes that belong to who asks.
        ailment: what keeps the GPU from working, and what mends it.
        nvml_refusal: why NVML does not answer.
        gpu_memory_of: what processes take of the GPU, bytes.
    """

    root: Path = Path("/")
    ailment: Callable[[], str | None] = gpu.ailment
    nvml_refusal: Callable[[], str | None] = gpu.nvml_refusal
    gpu_memory_of: Callable[[frozenset[int]], int | None] = gpu.memory_of
    env: Mapping[str, str] = field(default_factory=lambda: os.environ)
    gpu: Callable[[], gpu.Gpu | None] = lambda: gpu.from_nvml() or gpu.from_proc()
    package: Callable[[str], Path | None] = _package
    version: Callable[[str], str | None] = _version
    cache: Path = field(default_factory=cache_dir)
    locks: Path = LOCKS
    own: frozenset[int] = frozenset()

    @property
    def has_gpu(self) -> bool:
        """Whether a CUDA program would find a GPU."""
        return gpu.gpu_present(self.root, self.env)


def examine(machine: Machine, ops: Sequence[OpFacts] = ()) -> tuple[Finding, ...]:
    """Everything, in the order in which one thing needs another.

    Args:
        machine: what is looked at.
        ops: whose sizes should fit the GPU.
    """
    found = [
        the_gpu(machine),
        *health(machine),
        *gpu_memory(machine, ops),
        *driver(machine),
        *torch(machine),
    ]
    found += [triton(machine), ptxas(machine), *compiler(machine), *permissions(machine)]
    found += [host_memory(machine), *workers(machine), cache(machine), locks(machine)]
    return (*found, processes(machine))


# ---------------------------------------------------------------------------------- the GPU


def the_gpu(m: Machine) -> Finding:
    """Is there one that can be used?"""
    if m.has_gpu:
        found = m.gpu()
        name = found.name if found else "an NVIDIA GPU"
        return Finding(what="GPU", state="good", says=name)
    if (m.root / "dev/kfd").exists():
        return Finding(
            what="GPU", state="warn", says="an AMD GPU: not supported yet, kernels run on the CPU",
            mend="use a machine with an NVIDIA GPU",
        )  # fmt: skip
    if m.env.get("CUDA_VISIBLE_DEVICES", "all").strip() in ("", "-1", "NoDevFiles"):
        return Finding(
            what="GPU", state="warn", says="hidden by CUDA_VISIBLE_DEVICES",
            mend="unset CUDA_VISIBLE_DEVICES and restart the kernel",
        )  # fmt: skip
    return Finding(
        what="GPU", state="warn",
        says="none: kernels run in Triton's interpreter, which finds wrong numbers but no times",
        mend="use a machine with an NVIDIA GPU; in a container, start it with --gpus all",
    )  # fmt: skip


def health(m: Machine) -> Iterator[Finding]:
    """Does the driver ask for it to be reset?"""
    reason = m.ailment() if m.has_gpu else None
    if reason:
        yield Finding(
            what="GPU health", state="bad", says="the driver will not let it go on", mend=reason
        )


def gpu_memory(m: Machine, ops: Sequence[OpFacts]) -> Iterator[Finding]:
    """How much it has, and which of the largest sizes do not fit."""
    found = m.gpu() if m.has_gpu else None
    if found is None or found.memory_bytes is None:
        return
    room = found.memory_bytes * USABLE
    tight = [op.name for op in ops if max(map(_need_bytes, op.sizes.values())) > room]
    says = f"{found.memory_bytes / GIB:.0f} GiB"
    if not tight:
        yield Finding(what="GPU memory", state="good", says=f"{says}: every size of every op fits")
        return
    yield Finding(
        what="GPU memory", state="warn",
        says=f"{says}: the float64 oracle of {' and '.join(tight)} at large may not fit; that case "
        "is then listed as not run, every other size and op fits",
        mend="validate with --shape for one that fits; %config TritonMagics.standbys = 1 leaves "
        "more room",
    )  # fmt: skip


def _need_bytes(shape: tuple[int, ...]) -> int:
    """About what a validation takes at most: eight float64 tensors, or four of an attention's."""
    if len(shape) == 4:  # batch, heads, seq, head_dim: seq x seq scores for each head
        return 4 * 8 * shape[0] * shape[1] * shape[2] ** 2
    return 8 * 8 * math.prod(shape if len(shape) < 3 else sorted(shape)[-2:])


def driver(m: Machine) -> Iterator[Finding]:
    """Is it new enough for the CUDA that torch was built with?"""
    found = m.gpu() if m.has_gpu else None
    if found is None or found.driver is None:
        return
    cuda = _torch_cuda(m)
    needed = DRIVERS.get(cuda or 0, 0)
    if int(found.driver.split(".")[0]) >= needed:
        yield Finding(what="driver", state="good", says=found.driver)
        return
    yield Finding(
        what="driver", state="bad", says=f"{found.driver}, but torch's CUDA {cuda} needs {needed}",
        mend=f"install driver {needed} or later, or a torch built for an older CUDA",
    )  # fmt: skip


def _torch_cuda(m: Machine) -> int | None:
    """The CUDA major version that torch was built with; None: without CUDA, or no torch."""
    folder = m.package("torch")
    try:
        text = (folder / "version.py").read_text() if folder else ""
    except OSError:
        return None
    found = _CUDA.search(text)
    return int(found[1]) if found else None


# ------------------------------------------------------------------------------ the packages


def torch(m: Machine) -> Iterator[Finding]:
    """Is it installed, and for a GPU where there is one?"""
    version = m.version("torch")
    if version is None:
        yield Finding(
            what="torch", state="bad", says="not installed",
            mend="pip install 'triton-magics[kernels]'",
        )  # fmt: skip
    elif m.has_gpu and _torch_cuda(m) is None:
        yield Finding(
            what="torch", state="bad", says=f"{version}, built without CUDA: the GPU stays unused",
            mend="pip install --force-reinstall torch --index-url "
            "https://download.pytorch.org/whl/cu130",
        )  # fmt: skip
    else:
        yield Finding(what="torch", state="good", says=version)


def triton(m: Machine) -> Finding:
    """Is it installed, and one that is supported?"""
    version = m.version("triton")
    if version is None:
        return Finding(
            what="triton", state="bad", says="not installed",
            mend="pip install 'triton-magics[kernels]'",
        )  # fmt: skip
    if _numbers(version) < MIN_TRITON:
        needed = ".".join(map(str, MIN_TRITON))
        return Finding(
            what="triton", state="bad", says=f"{version}, older than {needed}",
            mend="pip install --upgrade 'triton-magics[kernels]'",
        )  # fmt: skip
    return Finding(what="triton", state="good", says=version)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", version)[:2])


def ptxas(m: Machine) -> Finding:
    """Is NVIDIA's assembler there, which comes with triton?"""
    named = m.env.get("TRITON_PTXAS_PATH")
    folder = m.package("triton")
    path = Path(named) if named else folder / "backends/nvidia/bin/ptxas" if folder else None
    if path is None:
        return Finding(what="ptxas", state="warn", says="comes with triton")
    if os.access(path, os.X_OK):
        return Finding(what="ptxas", state="good", says=f"`{path.name}` of triton's own")
    return Finding(
        what="ptxas", state="bad", says=f"`{path}` can't be run: no kernel can be compiled",
        mend="unset TRITON_PTXAS_PATH" if named else "pip install --force-reinstall triton",
    )  # fmt: skip


def compiler(m: Machine) -> Iterator[Finding]:
    """Is there a C compiler for Triton's launchers?"""
    if not m.has_gpu:
        return
    named = m.env.get("CC")
    known = (named,) if named else ("gcc", "clang", "cc")
    found = next((c for c in known if shutil.which(c, path=m.env.get("PATH"))), None)
    if found:
        yield Finding(what="C compiler", state="good", says=found)
    else:
        yield Finding(
            what="C compiler", state="bad", says="none: Triton can't build a kernel's launcher",
            mend="apt install gcc, or point CC to a compiler",
        )  # fmt: skip


# ------------------------------------------------------------------------------- permissions


def permissions(m: Machine) -> Iterator[Finding]:
    """May this user ask the driver: how busy the GPU is (NVML), what its counters say?"""
    if not m.has_gpu:
        return
    if m.version("nvidia-ml-py") is None:
        yield Finding(
            what="NVML", state="warn", says="nvidia-ml-py is not installed: clocks are not watched",
            mend="pip install 'triton-magics[gpu]'",
        )  # fmt: skip
    elif refusal := m.nvml_refusal():
        yield Finding(
            what="NVML", state="warn", says=f"{refusal}: clocks are not watched",
            mend="after an update of the driver: reboot; in a container: start it with --gpus all",
        )  # fmt: skip
    else:
        yield Finding(what="NVML", state="good", says="there")
    params = _read(m.root / "proc/driver/nvidia/params")
    if "RmProfilingAdminOnly: 1" in params:
        yield Finding(
            what="GPU counters", state="warn", says="for root only: Nsight Compute can't read them",
            mend="set NVreg_RestrictProfilingToAdminUsers=0 for the nvidia module and reboot",
        )  # fmt: skip
    else:
        yield Finding(what="GPU counters", state="good", says="may be read")


# ------------------------------------------------------------------------------- this machine


def host_memory(m: Machine) -> Finding:
    """How much a worker may take."""
    gib = memory_for_a_worker(m.root) / GIB
    if gib >= 3:
        return Finding(what="memory", state="good", says=f"a worker may take {gib:.1f} GiB")
    return Finding(
        what="memory", state="warn", says=f"a worker may take {gib:.1f} GiB: torch alone takes one",
        mend="give this machine or container 4 GiB or more",
    )  # fmt: skip


def workers(m: Machine) -> Iterator[Finding]:
    """What the warm workers take that wait for a job."""
    if not m.own:
        return
    memory = sum(_share_bytes(m.root, pid) for pid in m.own) / GIB
    on_gpu = m.gpu_memory_of(m.own)
    says = f"{len(m.own)} processes take {memory:.1f} GiB of memory"
    says += f" and {on_gpu / GIB:.1f} GiB of the GPU's" if on_gpu else ""
    yield Finding(
        what="workers", state="good", says=f"{says}; `TritonMagics.standbys` says how many wait"
    )


def _share_bytes(root: Path, pid: int) -> int:
    """A process's memory; what it shares with others is divided among them."""
    found = re.search(r"^Pss:\s+(\d+) kB", _read(root / f"proc/{pid}/smaps_rollup"), re.M)
    return int(found[1]) * 1024 if found else 0


def cache(m: Machine) -> Finding:
    """Can compiled kernels be kept?"""
    existing = next(p for p in (m.cache, *m.cache.parents) if p.exists())
    if not os.access(existing, os.W_OK):
        return Finding(
            what="cache", state="warn", says=f"`{m.cache}` can't be written: all is compiled anew",
            mend="set TRITON_MAGICS_CACHE to a folder of yours on a local disk",
        )  # fmt: skip
    free = shutil.disk_usage(existing).free / GIB
    if free < FREE_DISK_GIB:
        return Finding(
            what="cache", state="bad", says=f"`{m.cache}`: {free:.1f} GiB free",
            mend=f"free {FREE_DISK_GIB} GiB there, or set TRITON_MAGICS_CACHE to another folder",
        )  # fmt: skip
    return Finding(what="cache", state="good", says=f"`{m.cache}`, {free:.0f} GiB free")


def locks(m: Machine) -> Finding:
    """Who holds a GPU now? A lock goes with its process, so none can be stale."""
    tickets = sorted(m.locks.glob("*.holds.*")) + sorted(m.locks.glob("*.shares.*"))
    held = [f"{_read(path).strip()}{_age(path)}" for path in tickets if _is_held(path)]
    if not held:
        return Finding(what="GPU locks", state="good", says="free")
    return Finding(
        what="GPU locks", state="warn", says=f"held by {', '.join(held)}",
        mend="wait, or end that process",
    )  # fmt: skip


def _age(path: Path) -> str:
    try:
        return f", for {max(0.0, time.time() - path.stat().st_mtime):.0f} s"
    except OSError:  # it is free now
        return ""


def _is_held(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def processes(m: Machine) -> Finding:
    """Is a worker left that no notebook owns?"""
    stale = sorted(pid for pid in _workers(m.root) - m.own if not _watched(m.root, pid))
    if not stale:
        return Finding(what="processes", state="good", says="no worker was left behind")
    pids = " ".join(map(str, stale))
    return Finding(
        what="processes", state="bad", says=f"left behind: {pids}", mend=f"kill -9 {pids}"
    )


def _workers(root: Path) -> set[int]:
    found = {int(p.name) for p in (root / "proc").glob("[0-9]*")}
    return {pid for pid in found if WORKER in _command(root, pid)}


def _watched(root: Path, pid: int) -> bool:
    """Whether a nanny has started it, or has had it forked."""
    while len(stat := _read(root / f"proc/{pid}/stat").rpartition(")")[2].split()) > 1:
        pid = int(stat[1])
        command = _command(root, pid)
        if b"/nanny\0" in command:
            return True
        if WORKER not in command:
            return False
    return True  # it is gone


def _command(root: Path, pid: int) -> bytes:
    try:
        return (root / f"proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


__all__ = ["Machine", "examine"]
