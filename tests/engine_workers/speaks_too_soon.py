"""Answers before it is ready."""

import signal

from speak import Peer

Peer().reply("passed")
signal.pause()
