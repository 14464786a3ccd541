"""The laboratory: one method per verb, and the only thing that a front end calls."""

from triton_magics.lab.lab import Lab

__all__ = ["Lab"]
