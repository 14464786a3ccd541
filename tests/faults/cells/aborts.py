"""What a C assertion does.

status: crashed
sees: SIGABRT(?s:.*)at cell line
"""

import os


def triton_relu(x):
    os.abort()
