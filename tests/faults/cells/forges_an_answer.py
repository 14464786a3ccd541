"""A well-formed answer without the job's number.

class: descriptors
status: crashed
sees: broke the protocol
"""

import json
import os
import signal
import struct


def triton_relu(x):
    answer = {"type": "reply", "nonce": "0" * 32, "retire": False, "answer": {
        "kind": "description", "name": "relu", "sizes": {}, "shapes": [], "dtypes": [],
        "signature": "()", "doc": "", "outputs": []}}
    body = json.dumps(answer).encode()
    for fd in range(3, 1024):
        try:
            os.write(fd, struct.pack(">I", len(body)) + body)
        except OSError:
            pass
    signal.pause()
