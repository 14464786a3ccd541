"""A thread ends the process while the call goes on.

class: exit
status: crashed
sees: exit code 5
"""

import os
import threading


def triton_relu(x):
    threading.Thread(target=os._exit, args=(5,)).start()
    threading.Event().wait()
