"""An object that can't be thrown away.

class: wrapper
status: timeout
timeout: 2
sees: not done in 2 s(?s:.*)at cell line
"""

class Sticky:
    def __del__(self):
        while True:
            pass


def triton_relu(x):
    Sticky()
    return x
