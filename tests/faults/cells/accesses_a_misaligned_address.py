"""What torch raises after a misaligned load.

class: kernel
status: runtime_error
sees: misaligned address
"""

def triton_relu(x):
    raise RuntimeError("CUDA error: misaligned address")
