"""Characters that end a line for str.splitlines, but not for Python, come before the line.

class: exceptions
status: runtime_error
sees: raise ValueError\("the message"\)
"""

MARKS = "  "
TEXT = "formfeed"


def triton_relu(x):
    raise ValueError("the message")
