"""The name of its exception's class sets a terminal's title.

class: output
status: runtime_error
sees: t
"""

E = type("A\x1b]0;owned\x07B\u202e", (Exception,), {})


def triton_relu(x):
    raise E("t")
