"""Its result is no tensor, and every attribute of it exits.

class: wrapper
by: validate
timeout: 60
status: failed
sees: WRONG
"""


class X:
    shape = (4, 4)
    dtype = "float32"
    device = "cuda"

    def __getattr__(self, n):
        raise SystemExit(n)


def triton_relu(x):
    return X()
