"""Write tests/test_<op>.py: the validation of every version that passed, for the user's CI."""

from __future__ import annotations

import pprint
from collections.abc import Sequence
from typing import Any

from triton_magics.model import KernelSource, Validation

MARK = '"""Written by triton_magics'
_FILE = '''{mark}: each version of {op} that passed is still right.

Run it with pytest. A GPU runs every case. Without one, Triton's interpreter runs the cases that it
supports. The verb `log` with `--tests` writes this file again, as long as its first line is
unchanged.
"""

from pathlib import Path

import pytest

tm = pytest.importorskip("triton_magics")

KERNELS = Path(__file__).resolve().parents[1] / "kernels" / "{op}"
VERSIONS = {versions}


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """Open a separate workspace, so that the tests add nothing to the record."""
    with tm.Lab(tmp_path_factory.mktemp("{op}")) as lab:
        missing = lab.engine_state().missing
        if missing:
            pytest.skip(missing)
{reference}        yield lab


@pytest.mark.parametrize("version", VERSIONS)
def test_version_is_right(lab, version):
    recorded = VERSIONS[version]
    source = (KERNELS / recorded["file"]).read_text(encoding="utf-8")
    lab.kernel("{op}", version, source, **recorded["kernel"], compile=False)
    verdict = lab.validate("{op}", version, **recorded["validate"])
    tm.show(verdict)
    assert verdict.passed
'''
_REFERENCE = """\
        reference = KERNELS.parent / "{own}" / "reference.py"
        lab.reference("{own}", reference.read_text(encoding="utf-8"))
"""


def pytest_file(
    op: str, passed: Sequence[tuple[KernelSource, Validation]], *, own: str | None
) -> str:
    """Return the text of the test file.

    Args:
        op: canonical name.
        passed: versions that passed, each with its verdict.
        own: the user's own op whose reference defines this one; None for one that ships.
    """
    versions = {
        source.version: {
            "file": source.version + source.suffix,
            "kernel": {"entry": source.entry, "type": source.language},
            "validate": _requested_options(verdict),
        }
        for source, verdict in passed
    }
    return _FILE.format(
        mark=MARK,
        op=op,
        versions=pprint.pformat(versions, width=96, sort_dicts=False),
        reference=_REFERENCE.format(own=own) if own else "",
    )


def _requested_options(verdict: Validation) -> dict[str, Any]:
    """Return the dtypes and tolerances that the user requested for a validation."""
    return verdict.request.model_dump(include={"dtypes", "rtol", "atol"}, exclude_none=True)
