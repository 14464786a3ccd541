"""A pool of processes that nobody closes.

class: processes
status: passed
"""

import multiprocessing

import torch

pools = []


def triton_relu(x):
    pools.append(multiprocessing.get_context("fork").Pool(2))
    assert pools[-1].map(abs, [-1]) == [1]
    return torch.relu(x)
