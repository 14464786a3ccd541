"""The same, of Python.

class: memory
status: out_of_memory
sees: MemoryError
"""

def triton_relu(x):
    return bytearray(2**60)
