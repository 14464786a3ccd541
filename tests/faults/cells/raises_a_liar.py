"""An exception that says that it is of another class.

class: exceptions
status: runtime_error
sees: Liar
"""

class Liar(BaseException):
    @property
    def __class__(self):
        return SystemExit


def triton_relu(x):
    raise Liar
