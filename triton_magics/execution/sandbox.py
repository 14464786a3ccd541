"""A sandbox for the processes that run versions: Landlock, seccomp and no_new_privs, by ctypes.

A process enters it before it runs anything that is not ours, and its forks inherit it. It needs no
package and no rights. What it refuses raises PermissionError in the process.

    files    only the listed folders can be read or written; no others can be opened
    network  no socket can be made or connected, so no TCP, UDP, or socket of an agent or a daemon;
             with a GPU, CUDA's local sockets can be made, and not connected
    others   no signal to, trace of, or memory of a process outside the sandbox
    kernel   no mounts, namespaces, System V memory, keys, io_uring or eBPF

Sources: landlock(7), seccomp(2), the kernel's include/uapi/linux/{landlock,seccomp,filter}.h.
"""

from __future__ import annotations

import ctypes
import dataclasses
import json
import os
import stat
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

from triton_magics.execution import seccomp
from triton_magics.execution.scratch import SCRATCH, TEMPORARY

VARIABLE = "TRITON_MAGICS_SANDBOX_RULES"  # of the environment: a policy for a process to enter
MIN_ABI = 1
FULL_ABI = 6  # from Linux 6.12 on signals are refused too

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG = 1
_PATH_BENEATH = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = (1 << bit for bit in range(4))
_TRUNCATE, _IOCTL_DEVICE = 1 << 14, 1 << 15
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEVICE
_RIGHTS_OF_ABI = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}  # number of rights to files
_TCP = 3  # bind and connect
_ABSTRACT_SOCKETS, _SIGNALS = 1, 2


class SandboxError(Exception):
    """The kernel refused the sandbox."""


@dataclass(frozen=True)
class Policy:
    """The files that a worker's processes may use; a path that does not exist is ignored.

    Attributes:
        read: folders and files that can be read and executed.
        write: those that can be written too, beside the worker's own folder.
        reads_cwd: the working folder can be read.
        is_required: without the sandbox nothing must run.
        opens_cuda: it may make the local sockets without which cuInit fails (error 304).
        judge_write: folders that only a process which runs no version can write.
    """

    read: tuple[str, ...]
    write: tuple[str, ...] = ()
    reads_cwd: bool = False
    is_required: bool = False
    opens_cuda: bool = False
    judge_write: tuple[str, ...] = ()

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Return the policy of an environment variable's value."""
        fields: dict[str, Any] = json.loads(text)
        lists = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
        return cls(**fields | lists)

    def to_text(self) -> str:
        """Return the value of the environment variable."""
        return json.dumps(dataclasses.asdict(self))


_entered: list[Policy] = []


def is_active() -> bool:
    """Return True in a process that has entered a sandbox."""
    return bool(_entered)


def enter_from_environment(*, runs_versions: bool = True) -> None:
    """Enter the sandbox that the environment names; without one, or the second time, do nothing.

    Args:
        runs_versions: this process runs versions. One that runs none may end others, which are not
            in its sandbox, and write what workers share (`Policy.judge_write`).

    Raises:
        SandboxError: the kernel refuses a sandbox that is required.
    """
    text = os.environ.get(VARIABLE)
    if not text or _entered:
        return
    policy = Policy.from_text(text)
    own = [f"/proc/{os.getpid()}"]
    if scratch := os.environ.get(SCRATCH):
        own.append(scratch)
        os.environ["TMPDIR"] = os.path.join(scratch, TEMPORARY)
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(scratch, "inductor")
    cwd = readable_part(os.getcwd()) if policy.reads_cwd else ()
    own += () if runs_versions else policy.judge_write
    policy = dataclasses.replace(policy, read=(*policy.read, *cwd), write=(*policy.write, *own))
    try:
        enter(policy, may_signal=not runs_versions)
    except SandboxError:
        if policy.is_required:
            raise


def readable_part(folder: str) -> tuple[str, ...]:
    """Return the folder, or of one that contains the home folder only what is not hidden in it."""
    home = os.path.realpath(os.path.expanduser("~"))
    folder = os.path.realpath(folder)
    if folder == "/":
        return ()
    if os.path.commonpath((folder, home)) != folder:
        return (folder,)
    try:
        names = os.listdir(folder)
    except OSError:
        return ()
    visible = (os.path.join(folder, name) for name in names if not name.startswith("."))
    return tuple(path for path in visible if not f"{home}/".startswith(f"{path}/"))


def landlock_abi() -> int:
    """Return the version of Landlock that the kernel has; 0 if it has none."""
    if not seccomp.is_known_machine():
        return 0
    return max(0, _syscall(_CREATE_RULESET, None, 0, _VERSION_FLAG))


def enter(policy: Policy, *, may_signal: bool = False) -> None:
    """Restrict this thread and what it starts; it can't be undone.

    Args:
        policy: the files that it may use.
        may_signal: it may send signals to any process of the user.

    Raises:
        SandboxError: the kernel refuses, or is too old.
    """
    abi = landlock_abi()
    if abi < MIN_ABI:
        raise SandboxError("this kernel has no Landlock (Linux 5.13 or later, and not disabled)")
    rules = _make_rules(
        policy, abi, _ABSTRACT_SOCKETS if may_signal else _ABSTRACT_SOCKETS | _SIGNALS
    )
    try:
        seccomp.set_no_new_privileges()
        _check(_syscall(_RESTRICT_SELF, rules, 0), "Landlock")
        seccomp.refuse_calls(opens_cuda=policy.opens_cuda)
    except OSError as error:
        raise SandboxError(error.strerror) from error
    finally:
        os.close(rules)
    _entered.append(policy)


# ---------------------------------------------------------------------------------- Landlock


def _make_rules(policy: Policy, abi: int, scopes: int) -> int:
    handled = (1 << _RIGHTS_OF_ABI.get(abi, 16)) - 1
    fields = [handled]
    fields += [_TCP] if abi >= 4 else []
    fields += [scopes] if abi >= FULL_ABI else []
    attributes = struct.pack(f"={len(fields)}Q", *fields)
    rules = _check(_syscall(_CREATE_RULESET, attributes, len(attributes), 0), "Landlock")
    try:
        _allow(rules, policy.read, handled & _READ)
        _allow(rules, policy.write, handled)
    except BaseException:
        os.close(rules)
        raise
    return rules


def _allow(rules: int, paths: Iterable[str], rights: int) -> None:
    for path in dict.fromkeys(paths):
        try:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:  # there is no such path
            continue
        try:
            is_folder = stat.S_ISDIR(os.fstat(fd).st_mode)
            rule = struct.pack("=Qi", rights if is_folder else rights & _OF_FILES, fd)
            _check(_syscall(_ADD_RULE, rules, _PATH_BENEATH, rule, 0), f"Landlock, {path}")
        finally:
            os.close(fd)


# ------------------------------------------------------------------------------------- calls


def _syscall(number: int, *arguments: bytes | int | None) -> int:
    words = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    return int(call(ctypes.c_long(number), *words))


def _check(result: int, part: str) -> int:
    if result < 0:
        raise SandboxError(f"{part}: {os.strerror(ctypes.get_errno())}")
    return result


__all__ = [
    "FULL_ABI",
    "VARIABLE",
    "Policy",
    "SandboxError",
    "enter",
    "enter_from_environment",
    "is_active",
    "landlock_abi",
    "readable_part",
]
