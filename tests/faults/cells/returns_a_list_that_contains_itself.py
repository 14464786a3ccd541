"""Its result has no end.

class: wrapper
status: passed
sees: RAN
"""


def triton_relu(x):
    l = [x]
    l.append(l)
    return tuple(l)
