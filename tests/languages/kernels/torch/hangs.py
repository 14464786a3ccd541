"""It never returns.

op: softmax
status: timeout
"""

import torch


def torch_softmax(x):
    while True:
        x = x + 1
