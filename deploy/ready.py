#!/usr/bin/env python3
"""Probe of a server in a container: exit code 0 where it can run kernels.

triton-magics-ready            reads the token, asks /health
triton-magics-ready --alive    asks /healthz, which needs no token

READY_URL in the environment: another address than http://127.0.0.1:8000. (The server would refuse
TRITON_MAGICS_URL as a setting that is unknown.)
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from pathlib import Path

TIMEOUT_S = 3.0


def main() -> int:
    """Ask the server; return the exit code."""
    url = os.environ.get("READY_URL", "http://127.0.0.1:8000")
    if "--alive" in sys.argv:
        request = urllib.request.Request(f"{url}/healthz")
    else:
        base = Path(os.environ.get("XDG_CONFIG_HOME", Path.home() / ".config"))
        token = (base / "triton-magics" / "tokens").read_text().split()[1]
        headers = {"Authorization": f"Bearer {token}"}
        request = urllib.request.Request(f"{url}/health", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
            status = json.load(response)["status"]
    except OSError as error:
        print(error)
        return 1
    print(status)
    return 0 if status == "ok" else 1


if __name__ == "__main__":
    sys.exit(main())
