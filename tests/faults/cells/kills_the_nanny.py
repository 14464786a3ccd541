"""Nobody watches over it any more: it kills the parent of its worker's watchdog.

class: processes
status: crashed
sees: its supervisor process ended
"""

import os
import signal
from pathlib import Path


def triton_relu(x):
    pid = os.getpid()
    for _ in range(3):  # the judge, the watchdog, the supervisor
        stat = Path(f"/proc/{pid}/stat").read_text()
        pid = int(stat.rpartition(")")[2].split()[1])
    if b"supervisor" in Path(f"/proc/{pid}/cmdline").read_bytes():  # not the notebook's parent
        os.kill(pid, signal.SIGKILL)
    signal.pause()
