"""A thread that Python waits for at its end.

class: exit
status: passed
"""

import threading

import torch


def triton_relu(x):
    threading.Thread(target=threading.Event().wait).start()
    return torch.relu(x)
