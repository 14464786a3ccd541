"""Relative paths mean something else.

class: import
status: passed
"""

import os

import torch

os.chdir("/")


def triton_relu(x):
    return torch.relu(x)
