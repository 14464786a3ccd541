"""What torch raises after a load outside every allocation.

class: kernel
status: runtime_error
sees: a load or store goes outside its tensor
"""

def triton_relu(x):
    raise RuntimeError("CUDA error: an illegal memory access was encountered")
