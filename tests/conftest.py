"""Triton decides between GPU and interpreter when it is imported: here, for the interpreter.

Workers are given their own value by the engine; what needs a GPU in a process, starts one.
"""

from __future__ import annotations

import os

os.environ["TRITON_INTERPRET"] = "1"
