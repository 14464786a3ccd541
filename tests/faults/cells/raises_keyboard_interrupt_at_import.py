"""Before there is anything to call.

class: import
status: runtime_error
by: validate
sees: KeyboardInterrupt
"""

raise KeyboardInterrupt


def triton_relu(x):
    return x
