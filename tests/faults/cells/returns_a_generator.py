"""Its wrapper has a `yield`.

class: wrapper
by: validate
timeout: 60
status: failed
sees: generator
"""


def triton_relu(x):
    yield x
