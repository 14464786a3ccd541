"""Warms up for ever."""

import signal

signal.pause()
