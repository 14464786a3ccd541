"""Five thousand files in its temporary folder.

class: disk
status: passed
"""

import os
import tempfile

import torch


def triton_relu(x):
    folder = tempfile.mkdtemp()
    for i in range(5_000):
        open(os.path.join(folder, str(i)), "w").close()
    return torch.relu(x)
