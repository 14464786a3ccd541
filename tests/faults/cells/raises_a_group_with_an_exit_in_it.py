"""A group of an exit and an interrupt.

class: exceptions
status: runtime_error
sees: BaseExceptionGroup
"""

def triton_relu(x):
    raise BaseExceptionGroup("both", [SystemExit(0), KeyboardInterrupt()])
