"""A thread that needs the lock that the import holds.

class: import
status: timeout
timeout: 2
"""

import importlib
import threading

thread = threading.Thread(target=lambda: importlib.import_module(__name__), daemon=True)
thread.start()
thread.join()
while True:
    pass


def triton_relu(x):
    return x
