"""Run the function that the job's op names: each is one fault of a worker, or none."""

import json
import os
import select
import signal
import struct
import sys
import time

from speak import CASE, ENVIRONMENT, Peer

READY_AT = time.monotonic()


def answers(peer):
    """Reply with JSON: process, parent, environment, arguments, folder."""
    facts = {
        "pid": os.getpid(),
        "parent": os.getppid(),
        "session": os.getsid(0),
        "ready_at": READY_AT,
        "now": time.monotonic(),
        "env": dict(os.environ),
        "argv": sys.argv,
        "cwd": os.getcwd(),
        "fds": sorted(int(fd) for fd in os.listdir("/proc/self/fd")),
    }
    peer.reply(json.dumps(facts))


def makes_a_temporary(peer):
    import tempfile

    fd, file = tempfile.mkstemp()
    os.close(fd)
    peer.reply(json.dumps({"folder": tempfile.gettempdir(), "file": file}))


def takes_a_while(peer):
    peer.stage("taking a while")
    end = time.monotonic() + 0.15
    while time.monotonic() < end:
        pass
    answers(peer)


def wait_for_file():
    """Wait for the file that TRITON_TEST_RELEASE names, and remove it."""
    while not os.path.exists(os.environ["TRITON_TEST_RELEASE"]):
        time.sleep(0.002)
    os.unlink(os.environ["TRITON_TEST_RELEASE"])


def waits_for_a_file(peer):
    peer.stage("waiting for a file")
    wait_for_file()
    answers(peer)


def answers_and_retires(peer):
    peer.reply(json.dumps({"pid": os.getpid()}), retire=True)


def hangs(peer):
    peer.stage("hanging")
    signal.pause()


def hangs_silently(peer):
    signal.pause()


def hangs_deaf(peer):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    peer.stage("hanging, deaf to signals")
    while True:
        pass


def stops(peer):
    peer.stage("stopped")
    os.kill(os.getpid(), signal.SIGSTOP)


def reports_then_hangs(peer):
    peer.send(
        type="progress",
        nonce=peer.nonce,
        stage="planning",
        environment={**ENVIRONMENT, "device": "a better script"},
        planned=[{"case": CASE, "status": "not_run", "reason": "planned"}] * 3,
    )
    done = {"case": CASE, "status": "passed", "error_share": 0.25}
    peer.stage("validating 2x3 float32", case_result=done)
    timing = {"provider": "v1", "size": "small", "shape": [2, 3], "clock": "interpreter"}
    peer.stage("timing 2x3 float32", timing={**timing, "samples_us": [1.5, 2.5]})
    signal.pause()


def waits_for_others(peer):
    """Wait in four steps, each of which a file ends."""
    for step in range(4):
        peer.stage(f"waiting {step} s for the GPU", waits=True)
        wait_for_file()
    peer.stage("working")
    answers(peer)


def waits_for_others_and_works_too_long(peer):
    peer.stage("waiting 0 s for the GPU", waits=True)
    time.sleep(0.2)
    peer.stage("working")
    signal.pause()


def waits_and_says_no_more(peer):
    peer.stage("waiting 0 s for the GPU", waits=True)
    signal.pause()


def asks_for_patience(peer):
    peer.stage("compiling", patience_s=3000.0)
    end = time.monotonic() + 0.6
    while time.monotonic() < end:
        pass
    answers(peer)


def asks_for_too_much_patience(peer):
    peer.stage("compiling", patience_s=1e9)
    signal.pause()


def reports_for_ever(peer):
    while True:
        peer.stage("going round in circles")


def reports_cases_for_ever(peer):
    while True:
        peer.stage("x", case_result={"case": CASE, "status": "passed", "error_share": 0.0})


def exits_with_zero(peer):
    peer.stage("leaving")
    os._exit(0)


def exits_after_a_file(peer):
    peer.stage("leaving")
    wait_for_file()
    os._exit(0)


def exits_with_three(peer):
    print("three, alas", flush=True)
    os._exit(3)


def segfaults(peer):
    peer.stage("crashing")
    os.kill(os.getpid(), signal.SIGSEGV)


def is_killed(peer):
    os.kill(os.getpid(), signal.SIGKILL)


def answers_then_dies(peer):
    answers(peer)
    os._exit(1)


def sends_garbage(peer):
    peer.socket.sendall(b"\x00\x00\x00\x05hello")
    signal.pause()


def scribbles(peer):
    peer.socket.sendall(b"softmax: PASSED\n" * 10)
    signal.pause()


def sends_a_bare_number(peer):
    peer.socket.sendall(struct.pack(">I", 3) + b"NaN")
    signal.pause()


def sends_wrong_nonce(peer):
    peer.reply("forged", nonce="0" * 32)
    signal.pause()


def sends_ready_again(peer):
    peer.ready()
    signal.pause()


def sends_oversize_frame(peer):
    peer.socket.sendall(struct.pack(">I", 2**31))
    signal.pause()


def reports_then_sends_garbage(peer):
    done = {"case": CASE, "status": "passed", "error_share": 0.25}
    frame = {"type": "progress", "nonce": peer.nonce, "stage": "validating", "case_result": done}
    body = json.dumps(frame).encode()
    peer.socket.sendall(struct.pack(">I", len(body)) + body + b"\x00\x00\x00\x01{")
    signal.pause()


def closes_its_connection(peer):
    peer.socket.close()
    signal.pause()


def closes_everything(peer):
    os.closerange(0, 256)
    signal.pause()


def floods(peer):
    print("the beginning")
    sys.stdout.flush()
    for _ in range(50):
        os.write(1, b"x" * 2**20)
    print("the end", flush=True)
    answers(peer)


def floods_for_ever(peer):
    peer.stage("printing")
    while True:
        os.write(1, b"still at it\n" * 1000)


def prints_bytes(peer):
    os.write(1, b"caf\xc3\xa9 \xff\xfe\n")
    os.write(2, b"on stderr\n")
    answers(peer)


def prints_in_steps(peer):
    for step in range(3):
        os.write(1, f"step {step}\n".encode())  # one piece, however output is buffered
        wait_for_file()
    answers(peer)


DTYPES = "float32", "float16", "bfloat16"
PASSED = {"status": "passed", "error_share": 0.25}


def _part_of_cases(peer):
    """Return the cases of this worker's part; the first part reports the plan."""
    cases = [{**CASE, "dtype": dtype} for dtype in DTYPES]
    part, parts = peer.job["part"], peer.job["parts"]
    if part == 0:
        planned = [{"case": case, "status": "not_run", "reason": "planned"} for case in cases]
        peer.stage("planning", planned=planned)
    return cases[len(cases) * part // parts : len(cases) * (part + 1) // parts]


def validates_a_part(peer):
    """Pass the cases of this worker's part."""
    cases = _part_of_cases(peer)
    for i, case in enumerate(cases):
        done = {"case": case, **PASSED}
        peer.stage("validating", done=i, total=len(cases), case_result=done)
    verdict = {
        "kind": "validation", "op": "softmax", "version": "v1", "attempt": 1, "sha256": "",
        "status": "passed", "request": {"seed": 1}, "dtypes": DTYPES, "duration_s": 0.1,
        "cases": [{"case": case, **PASSED} for case in cases],
        "triton_kernels": [f"kernel_{peer.job['part']}"],
    }  # fmt: skip
    peer.send(type="reply", nonce=peer.nonce, answer=verdict)


def crashes_in_the_last_part(peer):
    """Pass all but the last case of the last part; a file lets that one crash."""
    cases = _part_of_cases(peer)
    if peer.job["part"] + 1 < peer.job["parts"]:
        for case in cases:
            peer.stage("validating", case_result={"case": case, **PASSED})
        signal.pause()
    *passed, last = cases
    for case in passed:
        peer.stage("validating", case_result={"case": case, **PASSED})
    peer.stage("validating", case=last)
    wait_for_file()
    os.kill(os.getpid(), signal.SIGSEGV)


def _compilation():
    return {
        "kind": "compilation", "op": "softmax", "version": "v1", "attempt": 1, "sha256": "",
        "status": "passed", "target": "sm_90", "here": False, "duration_s": 0.1,
    }  # fmt: skip


def answers_early(peer):
    """Print and send a compilation; a file lets the job end."""
    print("importing", flush=True)
    peer.stage("compiling", compilation=_compilation())
    wait_for_file()
    print("more", flush=True)
    peer.send(type="reply", nonce=peer.nonce, answer=_compilation())


def answers_early_then_dies(peer):
    peer.stage("compiling", compilation=_compilation())
    wait_for_file()
    os.kill(os.getpid(), signal.SIGSEGV)


def _daemonise():
    """Fork a process that leaves parent, session and group; return True in the grandchild."""
    if os.fork():
        return False
    os.setsid()
    if os.fork():
        os._exit(0)
    return True


def leaves_daemons(peer):
    """Leave a daemon in its own session and a child that ignores SIGTERM; both hold descriptors."""
    if _daemonise():
        os.setsid()
        signal.pause()
    if not os.fork():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.pause()
    answers_and_retires(peer)


def hangs_with_a_tool(peer):
    """Start a process that leads a group of its own, write a temporary file, and hang."""
    import tempfile

    tool = os.fork()
    if not tool:
        os.setpgid(0, 0)
        signal.pause()
    _, file = tempfile.mkstemp()
    peer.stage(f"{tool} {file}")
    signal.pause()


def leaves_a_daemon_alone(peer):
    """Leave a daemon, and be ready for the next job."""
    if _daemonise():
        os.setsid()
        signal.pause()
    os.wait()
    answers(peer)


def leaves_a_child_and_dies(peer):
    """Leave a child that keeps the data socket open, so that its end is no end-of-file."""
    if not os.fork():
        signal.pause()
    os._exit(0)


def multiplies(peer):
    """Run a bounded fork bomb: 20 processes, each of which forks a new daemon 200 times."""
    for _ in range(20):
        if not os.fork():
            for _ in range(200):
                if os.fork():
                    os._exit(0)
                os.setsid()
            signal.pause()
    peer.stage("multiplied")
    signal.pause()


def kills_its_parent(peer):
    os.kill(os.getppid(), signal.SIGKILL)
    peer.order()


def _parent(pid):
    with open(f"/proc/{pid}/stat") as stat:
        return int(stat.read().rpartition(")")[2].split()[1])


def _is_refused(call, *arguments):
    try:
        call(*arguments)
    except PermissionError:
        return True
    return False


def signals_those_above(peer):
    """Reply with the processes above, and which signals to them are refused; signal 0 ends none."""
    watchdog = os.getppid()
    supervisor = _parent(watchdog)
    notebook = _parent(supervisor)
    above = {"watchdog": watchdog, "supervisor": supervisor, "notebook": notebook}
    above["a sibling"] = os.fork() or signal.pause()
    refused = [name for name, pid in above.items() if _is_refused(os.kill, pid, 0)]
    refused += ["all"] if _is_refused(os.kill, -1, 0) else []
    refused += ["a group"] if _is_refused(os.killpg, supervisor, 0) else []
    refused += ["a descriptor"] if _is_refused(os.pidfd_open, supervisor) else []
    program = f"kill -0 {supervisor} 2>&1"
    refused += ["a program"] if os.system(program) else []
    os.kill(above["a sibling"], signal.SIGKILL)
    os.wait()
    peer.reply(json.dumps({"refused": refused, **above}))


def warms_up(peer):
    """Wait until a named file exists or a job has come; fork a child that `Ready` may name."""
    if field := os.environ.get("TRITON_TEST_CHILD"):
        child = os.fork() or signal.pause()
        named = {"subject_pid": child, "helper_pids": (child,)}
        peer.ready(**{name: pid for name, pid in named.items() if name == field})
        return
    until = os.environ.get("TRITON_TEST_WARM_UP")
    if until:
        peer.ready("due")
    while until and not os.path.exists(until):
        if select.select([peer.socket], [], [], 0.005)[0]:
            return
    peer.ready()


def main():
    peer = Peer()
    warms_up(peer)
    while True:
        globals()[peer.order()["op"]["name"]](peer)


main()
