"""A terminal's commands are taken out.

class: output
status: passed
sees: after them
"""

def triton_relu(x):
    print("\x1b[2J\x1b]0;title\x07after them")
    return x
