"""The same by a child.

class: memory
status: out_of_memory
timeout: 60
sees: GiB of memory
"""

import subprocess
import sys


def triton_relu(x):
    eat = "kept = []\nwhile True:\n    kept.append(bytearray(b'x') * 2**26)"
    subprocess.run([sys.executable, "-c", eat])
