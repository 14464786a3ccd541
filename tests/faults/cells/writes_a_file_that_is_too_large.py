"""The system refuses the file.

class: limits
status: runtime_error
sees: File too large
"""

import resource
import tempfile


def triton_relu(x):
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    with tempfile.TemporaryFile(buffering=0) as file:
        file.write(bytes(10_000))
        file.write(bytes(10_000))
