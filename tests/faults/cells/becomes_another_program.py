"""Another program in its place, which knows nothing of the job.

class: processes
status: crashed
timeout: 10
sees: closed its connection
"""

import os


def triton_relu(x):
    os.execvp("sleep", ["sleep", "600"])
