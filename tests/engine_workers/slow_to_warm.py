"""Takes half a second of its own time to be ready, then does what it is told."""

import time

while time.process_time() < 0.5:
    pass
import obeys  # noqa: E402, F401 (it runs as it is imported)
