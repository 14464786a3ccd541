"""A ValueError that can't be shown, in a validation.

class: exceptions
status: rejected
by: validate
sees: Unspeakable
"""


class Unspeakable(ValueError):
    def __str__(self):
        return self.no_such_attribute


def triton_relu(x):
    raise Unspeakable
