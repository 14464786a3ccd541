"""What torch raises after a `tl.device_assert` that does not hold.

class: kernel
status: runtime_error
sees: device-side assert
"""


def triton_relu(x):
    raise RuntimeError("CUDA error: device-side assert triggered")
