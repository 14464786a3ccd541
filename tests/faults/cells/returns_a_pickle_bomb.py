"""An object that runs code where it is unpickled: nothing is, ever.

class: wrapper
status: any
"""

import os


class Bomb:
    def __reduce__(self):
        return os.system, ("touch unpickled",)


def triton_relu(x):
    return Bomb()
