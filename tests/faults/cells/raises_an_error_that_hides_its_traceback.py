"""An exception whose traceback, cause and context can't be read.

class: exceptions
status: runtime_error
sees: cell line 1[89]
"""


class Hidden(Exception):
    @property
    def __traceback__(self):
        raise SystemExit(3)

    __cause__ = __context__ = __suppress_context__ = __notes__ = __traceback__


def triton_relu(x):
    raise Hidden("the message")
