"""An answer without end.

class: memory
status: any
"""

def triton_relu(x):
    return [x] * 1_000_000
