"""Timers: one timed call on a GPU."""
