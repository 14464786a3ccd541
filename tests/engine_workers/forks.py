"""Run the real fork server with workers of `obeys.py`; it is ready once a file exists."""

import os
import random
import sys
import time
from pathlib import Path

from triton_magics.harness.process import fork_server


def prepare():
    until = os.environ.get("TRITON_TEST_WAIT")
    while until and not Path(until).exists():
        time.sleep(0.005)


def work(mode, fd, *, environment=None):
    sys.argv = ["obeys.py", "--mode", mode, "--fd", str(fd)]
    os.environ["TRITON_TEST_RANDOM"] = str(random.random())
    import obeys  # noqa: F401 (serves when imported)


fork_server.serve(int(sys.argv[sys.argv.index("--fd") + 1]), work, prepare)
