"""tests/test_<op>.py: the validation of every kept version, for the user's own CI."""

from __future__ import annotations

import pprint
from collections.abc import Sequence
from typing import Any

from triton_magics.model import KernelSource, Validation

MARK = '"""Written by triton_magics'
_FILE = '''{mark}: each kept version of {op} is right.

Run it with pytest. With a GPU every case is run; without one Triton's interpreter runs what it
can. `%triton_log {op} --tests` writes this file again, as long as it begins with these words.
"""

from pathlib import Path

import pytest

tm = pytest.importorskip("triton_magics")

KERNELS = Path(__file__).resolve().parents[1] / "kernels" / "{op}"
VERSIONS = {versions}


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A workspace of its own: what happens here is no part of the record."""
    with tm.Lab(tmp_path_factory.mktemp("{op}")) as lab:
        missing = lab.engine_state().missing
        if missing:
            pytest.skip(missing)
{reference}        yield lab


@pytest.mark.parametrize("version", VERSIONS)
def test_version_is_right(lab, version):
    known = VERSIONS[version]
    source = (KERNELS / f"{{version}}.py").read_text(encoding="utf-8")
    lab.write("{op}", version, source, entry=known["entry"], compile=False)
    verdict = lab.validate("{op}", version, **known["validate"])
    tm.show(verdict)
    assert verdict.passed
'''
_REFERENCE = """\
        lab.reference("{op}", (KERNELS / "reference.py").read_text(encoding="utf-8"))
"""


def pytest_file(op: str, kept: Sequence[tuple[KernelSource, Validation]], *, own: bool) -> str:
    """The file's text.

    Args:
        op: canonical name.
        kept: versions that passed, each with its verdict.
        own: the op is the user's own, with its reference beside its versions.
    """
    versions = {
        source.version: {"entry": source.entry, "validate": _asked(verdict)}
        for source, verdict in kept
    }
    return _FILE.format(
        mark=MARK,
        op=op,
        versions=pprint.pformat(versions, width=96, sort_dicts=False),
        reference=_REFERENCE.format(op=op) if own else "",
    )


def _asked(verdict: Validation) -> dict[str, Any]:
    """What the version is held to: the dtypes and tolerances that were asked for."""
    given = dict(option.split(" ", 1) for option in verdict.options)
    found: dict[str, Any] = {}
    if dtypes := given.get("--dtype"):
        found["dtypes"] = tuple(dtypes.split(","))
    for name in ("rtol", "atol"):
        if value := given.get(f"--{name}"):
            found[name] = float(value)
    return found
