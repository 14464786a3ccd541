"""Its module claims another file and another name.

class: import
status: runtime_error
sees: KeyError
"""

__file__ = "/etc/passwd"
__name__ = "torch"


def triton_relu(x):
    raise KeyError(__file__)
