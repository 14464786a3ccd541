"""Each probe of a version succeeds outside the sandbox and is refused in it."""

from __future__ import annotations

import ctypes
import itertools
import os
import pickle
import resource
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from execution_kit import VERSION

import triton_magics
from triton_magics.config import SHARED, Settings, cache_dir
from triton_magics.errors import KnowledgeError, Unavailable
from triton_magics.execution import LocalExecutor, sandbox
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import DescribeJob, DeviceKind, ProfileJob
from triton_magics.execution.local import machine_checks, sandbox_policy
from triton_magics.execution.local.machine import Machine
from triton_magics.harness import load
from triton_magics.knowledge import folder, tables
from triton_magics.languages.compile_cache import compile_cache
from triton_magics.languages.torch_cuda.child import runtime as extension_runtime
from triton_magics.model import Case

pytestmark = pytest.mark.skipif(
    sandbox.landlock_abi() < sandbox.FULL_ABI, reason="needs Landlock with signals (Linux 6.12)"
)
SECRET = "correct horse battery staple"
PR_GET_NO_NEW_PRIVS = 39


class Place:
    """Files outside the sandbox, a folder inside it, and a process and sockets outside."""

    def __init__(self, folder: Path, victim: int, port: int) -> None:
        self.secret = folder / "home" / ".ssh" / "id"
        self.scratch = folder / "scratch"
        self.socket = folder / "agent"
        self.victim = victim
        self.port = port


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX) as agent,
        subprocess.Popen(["sleep", "60"], env={"TOKEN": SECRET}) as victim,
    ):
        place = Place(tmp_path, victim.pid, server.getsockname()[1])
        place.secret.parent.mkdir(parents=True)
        place.secret.write_text(SECRET)
        (place.scratch / "tmp").mkdir(parents=True)
        agent.bind(str(place.socket))
        agent.listen()
        yield place
        victim.kill()


def run_confined(
    place: Place,
    function: Callable[[Place], object],
    device: DeviceKind = "interpreter",
    policy: sandbox.Policy | None = None,
    *,
    runs_versions: bool = True,
) -> object:
    """Return what a function returns or raises in a fork that has entered a sandbox."""
    read_end, write_end = os.pipe()
    if not (child := os.fork()):
        try:
            policy = policy or sandbox_policy.make_policy(device)
            os.environ[sandbox.VARIABLE] = policy.to_text()
            os.environ[sandbox.SCRATCH] = str(place.scratch)
            os.chdir(place.scratch)
            sandbox.enter_from_environment(runs_versions=runs_versions)
            tempfile.tempdir = None
            answer = function(place)
        except BaseException as error:  # noqa: BLE001 (for the parent to judge)
            answer = error
        os.write(write_end, pickle.dumps(answer))
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        answer = pickle.loads(pipe.read())
    os.waitpid(child, 0)
    return answer


def call(name: str, *arguments: int | bytes) -> None:
    """Make a call of the C library, or a system call by its number.

    Raises:
        OSError: it was refused.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) < 0:
        raise OSError(ctypes.get_errno(), name)


def vm_read(place: Place) -> None:
    buffer = ctypes.create_string_buffer(8)
    pair = ctypes.c_size_t * 2
    own, theirs = pair(ctypes.addressof(buffer), 8), pair(0, 0)
    call("process_vm_readv", place.victim, own, 1, theirs, 0, 0)  # type: ignore[arg-type]


def connect_unix(place: Place) -> None:
    with socket.socket(socket.AF_UNIX) as agent:
        agent.connect(str(place.socket))


def send_datagram(place: Place) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.sendto(b"x", ("127.0.0.1", place.port))


def link_out(place: Place) -> str:
    (place.scratch / "link").symlink_to(place.secret)
    return (place.scratch / "link").read_text()


def move_out(place: Place) -> None:
    (place.scratch / "planted").write_text("x")
    (place.scratch / "planted").rename(place.secret.parent / "planted")


def change(path: Path) -> None:
    with path.open("r+b"):
        pass


def chmod_by_folder(place: Place) -> None:
    folder = os.open(place.secret.parent, os.O_PATH)
    os.chmod(place.secret.name, 0o600, dir_fd=folder)


def signal_victim(place: Place) -> None:
    os.kill(place.victim, signal.SIGCONT)


PROBES: dict[str, Callable[[Place], object]] = {
    "reads a secret": lambda p: p.secret.read_text(),
    "lists a folder": lambda p: os.listdir(p.secret.parent),
    "reads a secret by a link": link_out,
    "reads a secret by /proc": lambda p: Path(f"/proc/self/root{p.secret}").read_text(),
    "reads a secret by a program": lambda p: subprocess.run(
        ["cat", p.secret], check=True, stderr=subprocess.DEVNULL
    ),
    "links a secret": lambda p: os.link(p.secret, p.scratch / "hard"),
    "reads the system's passwords": lambda p: Path("/etc/shadow").read_bytes(),
    "reads an environment": lambda p: Path(f"/proc/{p.victim}/environ").read_bytes(),
    "reads a memory by /proc": lambda p: Path(f"/proc/{p.victim}/mem").open("rb").close(),
    "changes a secret": lambda p: change(p.secret),
    "truncates a secret": lambda p: os.truncate(p.secret, 4),
    "removes a secret": lambda p: p.secret.unlink(),
    "makes a file": lambda p: (p.secret.parent / "new").touch(),
    "makes a file in /tmp": lambda p: tempfile.mkstemp(dir="/tmp"),
    "makes shared memory": lambda p: Path(f"/dev/shm/tm-{os.getpid()}").touch(),
    "moves a file out": move_out,
    "changes this package": lambda p: change(Path(triton_magics.__file__)),
    "changes Python": lambda p: change(Path(os.__file__)),
    "connects by TCP": lambda p: socket.create_connection(("127.0.0.1", p.port)).close(),
    "sends by UDP": send_datagram,
    "serves by TCP": lambda p: socket.create_server(("127.0.0.1", 0)).close(),
    "connects to an agent": connect_unix,
    "sends a signal": signal_victim,
    "traces a process": lambda p: call("ptrace", 0x4206, p.victim, 0, 0),  # PTRACE_SEIZE
    "reads a memory": vm_read,
    "changes the mode of a secret": lambda p: p.secret.chmod(0o600),
    "changes a mode by a folder": chmod_by_folder,
    "changes the owner of a secret": lambda p: os.chown(p.secret, os.getuid(), os.getgid()),
    "sets an attribute of a secret": lambda p: os.setxattr(p.secret, "user.x", b"1"),
    "limits a process": lambda p: resource.prlimit(p.victim, resource.RLIMIT_NOFILE, (9, 9)),
    "lowers a priority": lambda p: os.setpriority(os.PRIO_PROCESS, p.victim, 19),
    "changes a scheduler": lambda p: os.sched_setscheduler(
        p.victim, os.SCHED_BATCH, os.sched_param(0)
    ),
    "makes a message queue": lambda p: call("mq_unlink", b"/triton_magics"),
    "makes System V memory": lambda p: call("shmget", 0, 4096, 0o1600),
    "makes a namespace": lambda p: call("unshare", 0x10000000),  # CLONE_NEWUSER
    "sets up io_uring": lambda p: call("syscall", 425, 1, 0),
}
# These fail, for another reason, outside a sandbox too.
ALSO_OUTSIDE = (
    "makes a namespace", "sets up io_uring", "traces a process", "reads a memory",
    "makes a message queue",
)  # fmt: skip


@pytest.mark.parametrize("device", ["interpreter", "gpu"])
@pytest.mark.parametrize("name", PROBES)
def test_a_probe_is_refused(place: Place, name: str, device: DeviceKind) -> None:
    if device == "gpu" and name == "makes shared memory":
        pytest.skip("the driver makes its own there")
    answer = run_confined(place, PROBES[name], device)
    refused = (PermissionError, subprocess.CalledProcessError)
    is_link = isinstance(answer, OSError) and "cross-device" in str(answer)
    assert isinstance(answer, refused) or is_link, answer
    assert place.secret.read_text() == SECRET


@pytest.mark.parametrize("name", [name for name in PROBES if name not in ALSO_OUTSIDE])
def test_a_probe_outside_the_sandbox_succeeds(place: Place, name: str) -> None:
    if os.getuid() and ("system" in name or "changes Python" in name):
        pytest.skip("only root may do this")
    if name.startswith("makes"):
        pytest.skip("it would leave something behind")
    PROBES[name](place)


def use_own_files(place: Place) -> tuple[str, int, str]:
    with tempfile.NamedTemporaryFile("w+") as file:
        file.write("mine")
        file.flush()
        text = Path(file.name).read_text()
    pair = socket.socketpair()
    pair[0].send(b"four")
    sent = len(pair[1].recv(10))
    ran = subprocess.run([sys.executable, "-S", "-c", "print(2 + 2)"], capture_output=True)  # noqa: PLW1510
    Path("/dev/null").write_text("nothing")
    assert Path("/proc/self/status").read_text()
    os.kill(os.getpid(), signal.SIGCONT)
    return text, sent, ran.stdout.decode()


def test_a_version_has_files_programs_and_pipes_of_its_own(place: Place) -> None:
    assert run_confined(place, use_own_files) == ("mine", 4, "4\n")


def test_cuda_makes_local_sockets_that_connect_to_nothing(place: Place) -> None:
    def connect(place: Place) -> str:
        kinds = []
        for family, kind in itertools.product(
            (socket.AF_UNIX, socket.AF_INET), (socket.SOCK_SEQPACKET, socket.SOCK_DGRAM)
        ):
            with suppress(PermissionError), socket.socket(family, kind) as own:
                kinds.append((own.family.name, own.type.name))
                own.connect(str(place.socket))
        return str(kinds)

    assert run_confined(place, connect, "gpu") == "[('AF_UNIX', 'SOCK_SEQPACKET')]"
    assert run_confined(place, connect) == "[]"


def test_a_confined_process_gains_no_rights(place: Place) -> None:
    def state(_: Place) -> int:
        return ctypes.CDLL(None).prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)

    assert run_confined(place, state) == 1


def read_mistakes(_: Place) -> int:
    folder.shipped.cache_clear()
    tables.mistakes.cache_clear()
    return len(tables.mistakes())


def test_the_advice_on_errors_can_be_read(place: Place) -> None:
    """In an editable install its folder lies outside the package."""
    assert run_confined(place, read_mistakes) == len(tables.mistakes())


def test_an_error_whose_advice_is_unreadable_has_a_message(place: Place) -> None:
    def describe(place: Place) -> str:
        with suppress(KnowledgeError):
            read_mistakes(place)
        return load.error_at_line("ValueError", "no such thing", 1, VERSION).message

    load.error_at_line("ValueError", "", 1, VERSION)  # imports what it needs
    assert run_confined(place, describe, policy=sandbox.Policy(read=())) == "no such thing"


def test_a_judge_may_end_its_processes(place: Place) -> None:
    def end(place: Place) -> None:
        os.kill(place.victim, signal.SIGCONT)

    policy = sandbox_policy.make_policy("interpreter")
    child = os.fork()
    if not child:
        sandbox.enter(policy, may_signal=True)
        end(place)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


# ------------------------------------------------------------------------------ its policy


def test_code_published_into_a_new_cache_is_readable(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_MAGICS_CACHE", str(tmp_path / "new"))
    policy = sandbox_policy.make_policy("interpreter")

    def publish_and_read(place: Place) -> list[str]:
        return os.listdir(cache_dir() / "compiled")

    assert run_confined(place, publish_and_read, policy=policy) == []


@pytest.mark.parametrize("runs_versions", [True, False])
def test_only_a_judge_writes_code_for_all_versions(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs_versions: bool
) -> None:
    monkeypatch.setenv("TRITON_MAGICS_CACHE", str(tmp_path / "new"))
    policy = sandbox_policy.make_policy("gpu")

    def share(place: Place) -> list[str]:
        os.environ["TRITON_CACHE_DIR"] = str(place.scratch / "triton")
        with compile_cache(("a" * 64,), is_warm_up=True):
            launcher = place.scratch / "triton" / "LAUNCHER"
            launcher.mkdir()
            (launcher / "launcher.so").write_bytes(b"code")
        return [path.name for path in (cache_dir() / SHARED).rglob("*.so")]

    shared = run_confined(place, share, policy=policy, runs_versions=runs_versions)
    assert shared == ([] if runs_versions else ["launcher.so"])


def test_an_extension_is_built_in_the_workers_own_folder(place: Place) -> None:
    def build(place: Place) -> str:
        with extension_runtime._build_folder(b"source"):
            return os.environ[extension_runtime.FOLDER]

    folder = run_confined(place, build)
    assert str(folder).startswith(str(place.scratch)), folder


def test_hidden_files_of_the_home_folder_are_not_readable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "people" / "me"
    for name in (".ssh", "work"):
        (home / name).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    assert sandbox.readable_part(str(home / "work")) == (str(home / "work"),)
    assert sandbox.readable_part(str(home)) == (str(home / "work"),)
    assert sandbox.readable_part(str(tmp_path / "people")) == ()
    assert sandbox.readable_part("/") == ()


def test_the_setting_decides_who_is_confined() -> None:
    choose = sandbox_policy.choose_policy
    assert choose(Settings(sandbox="off"), "interpreter") is None
    assert choose(Settings(sandbox="auto"), "gpu") is None
    chosen = choose(Settings(sandbox="auto"), "interpreter")
    assert chosen
    assert (chosen.reads_cwd, chosen.is_required) == (True, False)
    required = choose(Settings(sandbox="on"), "gpu")
    assert required
    assert (required.reads_cwd, required.is_required) == (False, True)
    assert sandbox.Policy.from_text(required.to_text()) == required


def test_a_required_sandbox_that_is_not_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("triton_magics.execution.local.executor.landlock_abi", lambda: 0)
    executor = LocalExecutor(Settings(device="interpreter", sandbox="on"))
    with pytest.raises(Unavailable, match=r"no Landlock .*sandbox = 'off'"):
        executor.submit(DescribeJob(op=OpRef(name="relu")))
    profile = ProfileJob(
        op=OpRef(name="relu"), version=VERSION, case=Case(shape=(4,), dtype="float32", seed=1)
    )
    with pytest.raises(Unavailable, match="Nsight Compute"):
        executor.submit(profile)


@pytest.mark.parametrize(
    ("setting", "abi", "state", "detail"),
    [
        ("auto", 7, "good", "files, network, signals"),
        ("auto", 4, "warn", "Landlock 4"),
        ("auto", 0, "warn", "no Landlock"),
        ("on", 0, "bad", "no Landlock"),
        ("off", 0, "good", "off"),
    ],
)
def test_doctor_names_what_the_kernel_lacks(
    tmp_path: Path, setting: str, abi: int, state: str, detail: str
) -> None:
    machine = Machine(root=tmp_path, env={}, sandbox=setting, landlock_abi=lambda: abi)
    finding = machine_checks.sandbox(machine)
    assert finding.state == state
    assert detail in finding.detail
