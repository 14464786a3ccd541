"""What a C assertion does.

class: signals
status: crashed
sees: SIGABRT(?s:.*)at cell line
"""

import os


def triton_relu(x):
    os.abort()
