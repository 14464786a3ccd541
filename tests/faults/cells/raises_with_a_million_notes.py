"""Its exception has a million notes.

class: exceptions
by: validate
timeout: 60
status: runtime_error
sees: RuntimeError: noted
"""


def triton_relu(x):
    e = RuntimeError("noted")
    e.__notes__ = ["n" * 100] * 1_000_000
    raise e
