"""Checks of what kernels need of this machine, without torch and without touching the GPU.

Each function checks one thing and returns a finding.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from triton_magics.execution.local.gpu_checks import (
    GIB,
    check_gpu,
    driver,
    gpu_memory,
    health,
    torch_cuda,
)
from triton_magics.execution.local.machine import Machine, read
from triton_magics.execution.local.profiler_checks import profiler
from triton_magics.execution.local.worker_environment import memory_for_a_worker
from triton_magics.execution.sandbox import FULL_ABI
from triton_magics.model import Finding, OpFacts

MIN_TRITON = (3, 6)
WORKER = b"triton_magics.harness\0"  # in the command of each worker and of its fork server
FREE_DISK_GIB = 2


def examine(machine: Machine, ops: Sequence[OpFacts] = ()) -> tuple[Finding, ...]:
    """Run all checks; each depends only on earlier ones.

    Args:
        machine: to check.
        ops: their sizes should fit the GPU.
    """
    findings = [
        check_gpu(machine),
        *health(machine),
        *gpu_memory(machine, ops),
        *driver(machine),
        *torch(machine),
    ]
    findings += [triton(machine), ptxas(machine), *compiler(machine), *nvml(machine)]
    findings += profiler(machine)
    findings += [host_memory(machine), *workers(machine), cache(machine), locks(machine)]
    findings.append(sandbox(machine))
    return (*findings, processes(machine))


def examine_gpu(machine: Machine, ops: Sequence[OpFacts], name: str) -> tuple[Finding, ...]:
    """Run the checks of one more GPU.

    Args:
        machine: its `gpu` is that GPU.
        ops: their sizes should fit it.
        name: of the GPU in the findings, such as `GPU 1`.
    """
    findings = (check_gpu(machine), *health(machine), *gpu_memory(machine, ops))
    return tuple(f.evolve(subject=f.subject.replace("GPU", name)) for f in findings)


# ------------------------------------------------------------------------------ packages


def torch(m: Machine) -> Iterator[Finding]:
    """Check that torch is installed, with CUDA if there is a GPU."""
    version = m.version("torch")
    if version is None:
        yield Finding(
            subject="torch", state="bad", detail="not installed",
            remedy="pip install 'triton-magics[kernels]'",
        )  # fmt: skip
    elif m.has_gpu and torch_cuda(m) is None:
        yield Finding(
            subject="torch", state="bad",
            detail=f"{version}, built without CUDA: the GPU stays unused",
            remedy="pip install --force-reinstall torch --index-url "
            "https://download.pytorch.org/whl/cu130",
        )  # fmt: skip
    else:
        yield Finding(subject="torch", state="good", detail=version)


def triton(m: Machine) -> Finding:
    """Check that a supported Triton is installed."""
    version = m.version("triton")
    if version is None:
        return Finding(
            subject="triton", state="bad", detail="not installed",
            remedy="pip install 'triton-magics[kernels]'",
        )  # fmt: skip
    if _numbers(version) < MIN_TRITON:
        needed = ".".join(map(str, MIN_TRITON))
        return Finding(
            subject="triton", state="bad", detail=f"{version}, older than {needed}",
            remedy="pip install --upgrade 'triton-magics[kernels]'",
        )  # fmt: skip
    return Finding(subject="triton", state="good", detail=version)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", version)[:2])


def ptxas(m: Machine) -> Finding:
    """Check that NVIDIA's assembler, which comes with Triton, can run."""
    named = m.env.get("TRITON_PTXAS_PATH")
    folder = m.package("triton")
    path = Path(named) if named else folder / "backends/nvidia/bin/ptxas" if folder else None
    if path is None:
        return Finding(subject="ptxas", state="warn", detail="comes with triton")
    if os.access(path, os.X_OK):
        return Finding(subject="ptxas", state="good", detail=f"`{path.name}` of triton's own")
    return Finding(
        subject="ptxas", state="bad", detail=f"`{path}` can't be run: no kernel can be compiled",
        remedy="unset TRITON_PTXAS_PATH" if named else "pip install --force-reinstall triton",
    )  # fmt: skip


def compiler(m: Machine) -> Iterator[Finding]:
    """Check that there is a C compiler for Triton's launchers."""
    if not m.has_gpu:
        return
    named = m.env.get("CC")
    names = (named,) if named else ("gcc", "clang", "cc")
    installed = next((c for c in names if shutil.which(c, path=m.env.get("PATH"))), None)
    if installed:
        yield Finding(subject="C compiler", state="good", detail=installed)
    else:
        yield Finding(
            subject="C compiler", state="bad",
            detail="none: Triton can't build a kernel's launcher",
            remedy="apt install gcc, or point CC to a compiler",
        )  # fmt: skip


# ------------------------------------------------------------------------------- permissions


def nvml(m: Machine) -> Iterator[Finding]:
    """Check that this user may query the driver."""
    if not m.has_gpu:
        return
    if m.version("nvidia-ml-py") is None:
        yield Finding(
            subject="NVML", state="warn",
            detail="nvidia-ml-py is not installed: clocks are not monitored",
            remedy="pip install 'triton-magics[gpu]'",
        )  # fmt: skip
    elif refusal := m.nvml_refusal():
        yield Finding(
            subject="NVML", state="warn", detail=f"{refusal}: clocks are not monitored",
            remedy="after an update of the driver, reboot; a container needs --gpus all",
        )  # fmt: skip
    else:
        yield Finding(subject="NVML", state="good", detail="available")


# ------------------------------------------------------------------------------- machine


def host_memory(m: Machine) -> Finding:
    """Check that a worker has enough memory."""
    gib = memory_for_a_worker(m.root) / GIB
    if gib >= 3:
        return Finding(subject="memory", state="good", detail=f"a worker may take {gib:.1f} GiB")
    return Finding(
        subject="memory", state="warn",
        detail=f"a worker may take {gib:.1f} GiB: torch alone takes 1 GiB",
        remedy="give this machine or container 4 GiB or more",
    )  # fmt: skip


def workers(m: Machine) -> Iterator[Finding]:
    """Report the memory of the standby workers."""
    if not m.own:
        return
    memory = sum(_share_bytes(m.root, pid) for pid in m.own) / GIB
    on_gpu = m.gpu_memory_of(m.own)
    says = f"{len(m.own)} processes take {memory:.1f} GiB of memory"
    says += f" and {on_gpu / GIB:.1f} GiB of the GPU's" if on_gpu else ""
    yield Finding(
        subject="workers",
        state="good",
        detail=f"{says}; the setting `standbys` is the number of standby workers",
    )


def _share_bytes(root: Path, pid: int) -> int:
    """Return a process's memory, shared memory divided among its users; bytes."""
    match = re.search(r"^Pss:\s+(\d+) kB", read(root / f"proc/{pid}/smaps_rollup"), re.M)
    return int(match[1]) * 1024 if match else 0


def cache(m: Machine) -> Finding:
    """Check that compiled kernels can be cached."""
    existing = next(p for p in (m.cache, *m.cache.parents) if p.exists())
    if not os.access(existing, os.W_OK):
        return Finding(
            subject="cache", state="warn",
            detail=f"`{m.cache}` can't be written: every session compiles again",
            remedy="set TRITON_MAGICS_CACHE to a folder of yours on a local disk",
        )  # fmt: skip
    free = shutil.disk_usage(existing).free / GIB
    if free < FREE_DISK_GIB:
        return Finding(
            subject="cache", state="bad", detail=f"`{m.cache}`: {free:.1f} GiB free",
            remedy=f"free {FREE_DISK_GIB} GiB there, or set TRITON_MAGICS_CACHE to another folder",
        )  # fmt: skip
    return Finding(subject="cache", state="good", detail=f"`{m.cache}`, {free:.0f} GiB free")


def locks(m: Machine) -> Finding:
    """Check that no process holds a GPU; a lock ends with its process, so none is stale."""
    tickets = sorted(m.locks.glob("*.holds.*")) + sorted(m.locks.glob("*.shares.*"))
    holders = [f"{read(path).strip()}{_age(path)}" for path in tickets if _is_held(path)]
    if not holders:
        return Finding(subject="GPU locks", state="good", detail="free")
    return Finding(
        subject="GPU locks", state="warn", detail=f"held by {', '.join(holders)}",
        remedy="wait, or end that process",
    )  # fmt: skip


def _age(path: Path) -> str:
    try:
        return f", for {max(0.0, time.time() - path.stat().st_mtime):.0f} s"
    except OSError:  # it has just been released
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


def sandbox(m: Machine) -> Finding:
    """Check that versions run in a sandbox, and that the kernel supports all of it."""
    abi = m.landlock_abi()
    if m.sandbox == "off":
        return Finding(subject="sandbox", state="good", detail="off, as set")
    if not abi:
        return Finding(
            subject="sandbox", state="bad" if m.sandbox == "on" else "warn",
            detail="this kernel has no Landlock: versions run with all your rights",
            remedy="use Linux 5.13 or later with Landlock enabled, or a container",
        )  # fmt: skip
    if m.sandbox == "auto" and m.has_gpu:
        return Finding(
            subject="sandbox", state="good",
            detail="only without a GPU; `%config TritonMagics.sandbox = 'on'` for all versions",
        )  # fmt: skip
    if abi < FULL_ABI:
        return Finding(
            subject="sandbox", state="warn",
            detail=f"Landlock {abi}: versions can send signals to your other processes",
            remedy="use Linux 6.12 or later",
        )  # fmt: skip
    return Finding(subject="sandbox", state="good", detail=f"files, network, signals (ABI {abi})")


def processes(m: Machine) -> Finding:
    """Check that there is no worker without a notebook."""
    stale = sorted(pid for pid in _workers(m.root) - m.own if not _has_supervisor(m.root, pid))
    if not stale:
        return Finding(subject="processes", state="good", detail="no worker was left behind")
    pids = " ".join(map(str, stale))
    return Finding(
        subject="processes",
        state="bad",
        detail=f"left behind: {pids}",
        remedy=f"kill -9 {pids}",
    )


def _workers(root: Path) -> set[int]:
    pids = {int(p.name) for p in (root / "proc").glob("[0-9]*")}
    return {pid for pid in pids if WORKER in _command(root, pid)}


def _has_supervisor(root: Path, pid: int) -> bool:
    """Return True if an ancestor is a supervisor."""
    while len(stat := read(root / f"proc/{pid}/stat").rpartition(")")[2].split()) > 1:
        pid = int(stat[1])
        command = _command(root, pid)
        if b"/supervisor\0" in command:
            return True
        if WORKER not in command:
            return False
    return True  # it has ended


def _command(root: Path, pid: int) -> bytes:
    try:
        return (root / f"proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


__all__ = ["examine"]
