"""A module whose import does not end.

class: import
status: timeout
timeout: 2
sees: not done in 2 s(?s:.*)at cell line
"""

while True:
    pass


def triton_relu(x):
    return x
