"""A thread that prints for ever.

class: output
status: passed
"""

import threading
import time

import torch


def chatter():
    while True:
        print("still here")
        time.sleep(0.01)


def triton_relu(x):
    threading.Thread(target=chatter, daemon=True).start()
    return torch.relu(x)
