"""The file that says where it hangs is a pipe that nobody writes.

class: damage
status: timeout
timeout: 2
sees: not done in 2 s
"""

import os
from pathlib import Path


def triton_relu(x):
    stack = Path(os.environ["TRITON_MAGICS_SCRATCH"]) / "stack"
    stack.unlink(missing_ok=True)
    os.mkfifo(stack)
    while True:
        pass
