"""Two hundred threads that wait.

class: processes
status: passed
"""

import threading

import torch


def triton_relu(x):
    for _ in range(200):
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    return torch.relu(x)
