"""A thread that outlives the import, and ends the process.

class: import
status: crashed
sees: SIGABRT
"""

import os
import threading

threading.Timer(0.1, os.abort).start()


def triton_relu(x):
    threading.Event().wait()
