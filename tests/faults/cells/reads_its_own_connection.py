"""It takes what is meant for others.

class: descriptors
status: timeout
timeout: 2
"""

import os
import socket
import stat


def triton_relu(x):
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and os.path.exists(f"/proc/self/fd/{name}"):
            if stat.S_ISSOCK(os.stat(int(name)).st_mode):
                socket.socket(fileno=int(name)).recv(100)
    while True:
        pass
