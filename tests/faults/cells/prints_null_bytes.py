"""Bytes that end a text in C.

class: output
status: passed
sees: after them
"""

import os

import torch


def triton_relu(x):
    os.write(1, bytes(1_000) + b"after them\n")
    return torch.relu(x)
