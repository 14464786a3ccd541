"""`python -m triton_magics`: the command line of the Python that it is given to."""

from __future__ import annotations

import sys

from triton_magics.cli import main

if __name__ == "__main__":
    sys.exit(main())
