"""`compute-sanitizer ... python -m triton_magics.worker.sanitized`: one call, asked on stdin."""

from __future__ import annotations

import json
import sys

import torch

from triton_magics.engine.protocol import ValidateJob
from triton_magics.model import Case
from triton_magics.worker.cases import make_pristine
from triton_magics.worker.load import load_op, load_version


def main() -> None:
    """Loads the version and calls it once on the case."""
    asked = json.load(sys.stdin)
    job, case = ValidateJob(**asked["job"]), Case(**asked["case"])
    given = make_pristine(load_op(job.op), case, torch.device("cuda", 0))
    version = load_version(job.version)
    torch.cuda.synchronize()
    with torch.no_grad():
        version.call(*given)
    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
