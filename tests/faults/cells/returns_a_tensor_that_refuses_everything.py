"""Every operation of torch on its result raises.

class: wrapper
status: runtime_error
sees: RuntimeError: never
"""

import torch


class T(torch.Tensor):
    @classmethod
    def __torch_function__(cls, f, t, a=(), k=None):
        raise RuntimeError("never")


def triton_relu(x):
    return x.clone().as_subclass(T)
