"""A group of groups, a thousand deep, each with a note of a megabyte.

class: exceptions
status: runtime_error
sees: ExceptionGroup
"""


def triton_relu(x):
    error = ValueError("the innermost")
    for _ in range(1000):
        error.add_note("n" * 1_000_000)
        error = ExceptionGroup("a level", [error])
    raise error
