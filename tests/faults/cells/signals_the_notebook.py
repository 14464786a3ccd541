"""Its signal would do no harm; one that ends the notebook is refused just the same.

class: signals
status: runtime_error
sees: PermissionError
"""

import os
import signal
from pathlib import Path


def triton_relu(x):
    pid = os.getpid()
    for _ in range(4):  # the judge, the watchdog, the supervisor, the notebook
        stat = Path(f"/proc/{pid}/stat").read_text()
        pid = int(stat.rpartition(")")[2].split()[1])
    os.kill(pid, signal.SIGCONT)
