"""An exception at import that can't be shown.

class: import
status: runtime_error
sees: Unspeakable
"""


class Unspeakable(ValueError):
    def __str__(self):
        return self.no_such_attribute


def triton_relu(x):
    return x


raise Unspeakable
