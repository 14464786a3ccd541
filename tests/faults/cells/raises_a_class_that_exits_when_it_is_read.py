"""The class of its exception can't be looked at.

class: exceptions
status: runtime_error
sees: SystemExit
"""


class M(type):
    def __getattribute__(c, n):
        raise SystemExit(n)

    def __instancecheck__(c, o):
        raise SystemExit

    def __subclasscheck__(c, o):
        raise SystemExit


class E(Exception, metaclass=M):
    pass


def triton_relu(x):
    raise E("hidden")
