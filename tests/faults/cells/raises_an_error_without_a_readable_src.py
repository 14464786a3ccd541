"""An exception with the attribute that compile errors have, which raises.

class: exceptions
status: runtime_error
sees: the message
"""


class Opaque(Exception):
    @property
    def src(self):
        raise SystemExit(3)

    error_message = node = src


def triton_relu(x):
    raise Opaque("the message")
