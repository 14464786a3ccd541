"""The IPython front end: magics, completion, static outputs, panels.

`%load_ext` imports neither torch, triton, matplotlib nor ipywidgets.
"""

from triton_magics.notebook.extension import load, unload

__all__ = ["load", "unload"]
