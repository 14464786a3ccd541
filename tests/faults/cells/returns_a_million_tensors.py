"""It returns one tensor a million times.

class: wrapper
by: validate
timeout: 60
status: any
"""


def triton_relu(x):
    return [x] * 1_000_000
