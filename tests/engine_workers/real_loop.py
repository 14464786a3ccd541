"""The real worker's loop, with a warm-up and handlers that need no torch.

The job's op names what the handler does.
"""

import ctypes
import gc
import os
import re
import signal
import sys
import threading
import time
import types

from triton_magics.errors import UnknownOp
from triton_magics.execution.job_answers import OpDescription
from triton_magics.harness import __main__ as worker
from triton_magics.model import Case, CaseResult, CaseStatus, Environment, Timing


class UserFault(Exception):
    """Stands for the one of `worker.load`, which imports torch."""


class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError("no words")


def op_description(doc="", name="scripted"):
    return OpDescription(
        name=name, sizes={}, shapes=(), dtypes=(), signature="()", doc=doc, outputs=()
    )


def fine(report):
    print("on stdout")
    return op_description(" ".join(sys.argv), name=str(os.getpid())), False


def prints_from_c(report):
    ctypes.CDLL(None).printf(b"from C\n")
    return op_description(), False


def reports(report):
    case = Case(shape=(2, 3), dtype="float32", seed=1)
    report.environment(warm_up("better one"))
    report.plan([CaseResult(case=case, status=CaseStatus.NOT_RUN, reason="planned")])
    for done in range(1000):
        report.stage("validating", done, 1000)
    report.case(CaseResult(case=case, status=CaseStatus.PASSED, error_share=0.5))
    report.stage("timing", patience_s=77.0)
    where = {"provider": "v1", "size": "small", "shape": (2, 3), "clock": "interpreter"}
    report.timing(Timing(samples_us=(1.0,), **where))
    return op_description(), False


def reports_after_its_end(report):
    globals()["late"] = report
    return op_description(), False


def reports_for_the_last_job(report):
    globals()["late"].stage("too late")
    return op_description(), False


def raises(report):
    raise ZeroDivisionError("one by none")


def raises_the_users_fault(report):
    raise UserFault("softmax has no dtype 'int3'")


def raises_an_unknown_name(report):
    raise UnknownOp("unknown op 'sofmax'")


def raises_the_unspeakable(report):
    raise Unspeakable


def raises_surrogates(report):
    raise ValueError("caf\udce9")


def calls_sys_exit(report):
    sys.exit(0)


def raises_keyboard_interrupt(report):
    raise KeyboardInterrupt


def returns_nonsense(report):
    return "passed"


def returns_surrogates(report):
    return op_description("caf\udce9"), False


def returns_too_much(report):
    return op_description("x" * 2**25), False


def is_interrupted(report):
    os.kill(os.getpid(), signal.SIGINT)
    return op_description(), False


def closes_every_descriptor(report):
    os.closerange(3, 4096)
    report.stage("closed")
    return op_description(), False


def closes_every_descriptor_and_waits(report):
    os.closerange(3, 4096)
    threading.Event().wait()


def closes_the_usual_descriptors(report):
    os.closerange(3, 64)
    return op_description("still here"), False


def closes_stdout(report):
    sys.stdout.close()
    sys.stderr = None
    return op_description(), False


def exits(report):
    os._exit(0)


def segfaults(report):
    report.stage("reading address 0")
    ctypes.string_at(0)


def holds_the_interpreter(report):
    report.stage("in C, for ever")
    ctypes.PyDLL(None).pause()


def has_no_nonce_in_reach(report):
    namespaces = [vars(module) for module in list(sys.modules.values())]
    values = [value for names in [*namespaces, vars(report)] for value in names.values()]
    texts = [value for value in values if isinstance(value, str)]
    return op_description(
        str([text for text in texts if re.fullmatch("[0-9a-f]{32}", text)])
    ), False


def ends_with_stragglers(report):
    threading.Thread(target=threading.Event().wait).start()
    gc.disable()
    return op_description(), False


def run(job, report):
    return globals()[job.op.name](report)


def warm_up(mode):
    return Environment(
        device_kind="interpreter", device=f"a {mode}", python="3", torch="none", triton="none",
        gpu_uuid=os.environ.get("TRITON_TEST_GPU"),
    )  # fmt: skip


def module(name, **names):
    new_module = types.ModuleType(name)
    vars(new_module).update(names)
    sys.modules[name] = new_module


def create_context(mode):
    return warm_up(mode)


def run_warm_up(mode, is_wanted, is_wanted_before_timing):
    """Report two steps, the second for timings, each with its time."""
    for has_job in (is_wanted, is_wanted_before_timing):
        if has_job():
            return False
        print(time.monotonic(), flush=True)
    return True


module("triton_magics.harness.process.device", create_context=create_context)
module("triton_magics.harness.warm_up", run=run_warm_up)
module("triton_magics.harness.correctness.describe_job", run=run)
module("triton_magics.harness.load", UserFault=UserFault)
module("triton_magics.harness.correctness.remote_calls", name_record=lambda: None)
worker.main()
