"""Filters of system calls (seccomp), by ctypes; x86-64 and arm64.

A thread installs a filter for itself and all that it starts; it can't be undone. A refused call
ends with EPERM, which Python raises as PermissionError.

Sources: seccomp(2), the kernel's include/uapi/linux/{seccomp,filter}.h.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import platform
import struct
from collections.abc import Iterable, Sequence

_PR_SET_NO_NEW_PRIVS = 38
_SET_FILTER = 1
# Linux before 5.16 would slow the process down against reads of its own memory by speculation.
_SPECULATION_ALLOWED = 4

# Numbers of system calls: x86-64, arm64; None: that machine has no such call.
_REFUSED: dict[str, tuple[int | None, int | None]] = {
    "socket": (41, 198), "connect": (42, 203), "io_uring_setup": (425, 425),
    "shmget": (29, 194), "semget": (64, 190), "msgget": (68, 186),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "bpf": (321, 280), "userfaultfd": (323, 282), "unshare": (272, 97), "setns": (308, 268),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "init_module": (175, 105), "finit_module": (313, 273), "kexec_load": (246, 104),
    "open_by_handle_at": (304, 265), "mq_open": (240, 180), "mq_unlink": (241, 181),
    # Landlock lets a file's owner change these in any folder.
    "chmod": (90, None), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, None), "lchown": (94, None), "fchownat": (260, 54),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "setxattrat": (463, 463),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "removexattrat": (466, 466),
}  # fmt: skip
# Allowed for the calling thread alone, which is number 0: the call, and which argument names it.
_FOR_ITSELF = {
    (302, 261): 0, (141, 140): 1,  # prlimit64, setpriority
    (144, 119): 0, (142, 118): 0, (314, 274): 0,  # sched_setscheduler, _setparam, _setattr
    (251, 30): 1,  # ioprio_set
}  # fmt: skip
# Their first argument is a pid; kill's may be a negative process group, or -1 for all processes.
_SIGNALLING = {
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "pidfd_open": (434, 434),
    "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
}  # fmt: skip
_SECCOMP = 317, 277
_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_X32 = 0x40000000
_LOAD, _AND, _JUMP_EQUAL, _JUMP_AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
# In struct seccomp_data; of an argument the lower half, since both architectures are little-endian.
_NUMBER_OFFSET, _ARCHITECTURE_OFFSET, _FIRST_OFFSET, _SECOND_OFFSET = 0, 4, 16, 24
_ARGUMENT_BYTES = 8
_AF_UNIX, _SOCK_SEQPACKET, _SOCK_TYPE_BITS = 1, 5, 0xF
_EVERY_PROCESS = -1

Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, constant


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def is_known_machine() -> bool:
    """Return True if the numbers of this machine's system calls are known."""
    return platform.machine() in _ARCHITECTURES


def set_no_new_privileges() -> None:
    """Let no program that is started gain rights, by setuid or otherwise.

    Raises:
        OSError: the kernel refuses.
    """
    _check("no_new_privs", _libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))


def refuse_calls(*, opens_cuda: bool = False) -> None:
    """Refuse sockets, namespaces, other processes' memory and limits, and changes of modes.

    Args:
        opens_cuda: the local sockets that cuInit makes are allowed.

    Raises:
        OSError: the kernel refuses; `set_no_new_privileges` comes first.
    """
    column, _ = _ARCHITECTURES[platform.machine()]
    code: list[Instruction] = []
    if opens_cuda:  # decides on every call of socket
        code += [
            (_JUMP_EQUAL, 0, 7, _REFUSED["socket"][column] or 0),
            (_LOAD, 0, 0, _FIRST_OFFSET),
            (_JUMP_EQUAL, 0, 3, _AF_UNIX),
            (_LOAD, 0, 0, _SECOND_OFFSET),
            (_AND, 0, 0, _SOCK_TYPE_BITS),
            (_JUMP_EQUAL, 1, 0, _SOCK_SEQPACKET),
            (_RETURN, 0, 0, _REFUSE),
            (_RETURN, 0, 0, _ALLOW),
        ]
    for call, argument in _FOR_ITSELF.items():
        code += [
            (_JUMP_EQUAL, 0, 4, call[column]),
            (_LOAD, 0, 0, _FIRST_OFFSET + argument * _ARGUMENT_BYTES),
            (_JUMP_EQUAL, 0, 1, 0),
            (_RETURN, 0, 0, _ALLOW),
            (_RETURN, 0, 0, _REFUSE),
        ]
    numbers = [number for call in _REFUSED.values() if (number := call[column]) is not None]
    tests = [(_JUMP_EQUAL, number) for number in numbers]
    tests += [(_JUMP_AT_LEAST, _X32)] if column == 0 else []
    code += [*_jump_if_any(tests), (_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _REFUSE)]
    _install(code, otherwise=_REFUSE)


def refuse_signals(pids: Iterable[int]) -> None:
    """Refuse signals to these processes, to their groups, and to all processes at once.

    Without seccomp, or on another machine than x86-64 and arm64, do nothing.

    Args:
        pids: of processes that will outlive this one.
    """
    if not is_known_machine():
        return
    column, _ = _ARCHITECTURES[platform.machine()]
    targets = [_EVERY_PROCESS, *(number for pid in pids for number in (pid, -pid))]
    calls = _jump_if_any([(_JUMP_EQUAL, call[column]) for call in _SIGNALLING.values()])
    pid_tests = _jump_if_any([(_JUMP_EQUAL, target % 2**32) for target in targets])
    allow, refuse = (_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _REFUSE)
    with contextlib.suppress(OSError):
        set_no_new_privileges()
        code = [*calls, allow, (_LOAD, 0, 0, _FIRST_OFFSET), *pid_tests, allow, refuse]
        _install(code, otherwise=_ALLOW)


def _jump_if_any(tests: Sequence[tuple[int, int]]) -> list[Instruction]:
    """Return tests of the loaded word; the first that holds skips the instruction after them."""
    return [(test, len(tests) - i, 0, word) for i, (test, word) in enumerate(tests)]


def _install(code: Sequence[Instruction], *, otherwise: int) -> None:
    """Install a filter, which starts with the call's number loaded.

    Args:
        code: its instructions.
        otherwise: what 32-bit calls get, which have other numbers.
    """
    column, architecture = _ARCHITECTURES[platform.machine()]
    code = [
        (_LOAD, 0, 0, _ARCHITECTURE_OFFSET),
        (_JUMP_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, otherwise),
        (_LOAD, 0, 0, _NUMBER_OFFSET),
        *code,
    ]
    instructions = b"".join(struct.pack("=HBBI", *instruction) for instruction in code)
    program = ctypes.byref(_Program(len(code), instructions))
    flags = _SPECULATION_ALLOWED
    _check("seccomp", _libc().syscall(_SECCOMP[column], _SET_FILTER, flags, program))


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(part: str, result: int) -> None:
    if result:
        raise OSError(ctypes.get_errno(), f"{part}: {os.strerror(ctypes.get_errno())}")


__all__ = [
    "is_known_machine",
    "refuse_calls",
    "refuse_signals",
    "set_no_new_privileges",
]
