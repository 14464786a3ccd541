"""Run the command line: `python -m triton_magics`."""

from __future__ import annotations

import sys

from triton_magics.cli import main

if __name__ == "__main__":
    sys.exit(main())
