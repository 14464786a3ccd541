"""Its file is no text any more when it raises.

class: damage
status: runtime_error
sees: the message
"""

from pathlib import Path


def triton_relu(x):
    Path(__file__).write_bytes(b"\xff\xfe\x00" * 100)
    raise ValueError("the message")
