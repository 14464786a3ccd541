"""An exception that can't say what it is.

class: exceptions
status: runtime_error
sees: Unspeakable
"""

class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError


def triton_relu(x):
    raise Unspeakable
