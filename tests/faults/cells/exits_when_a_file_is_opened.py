"""An audit hook, which can't be removed, ends the process.

class: patches
by: validate
timeout: 60
status: crashed
sees: exit code 9
"""

import os
import sys


def hook(e, a):
    if e == "open":
        os._exit(9)


sys.addaudithook(hook)


def triton_relu(x):
    return x
