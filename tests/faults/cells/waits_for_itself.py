"""A lock that is taken twice.

class: wrapper
status: timeout
timeout: 2
sees: not done in 2 s(?s:.*)at cell line
"""

import threading


def triton_relu(x):
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()
