"""`triton_magics.testing.check`, as the tests of a project call it."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest

from triton_magics.errors import BadValue
from triton_magics.testing import check

ROOT = Path(__file__).parents[1]
RIGHT = ROOT / "tests" / "faults" / "kernels" / "softmax_right.py"
GUIDE = ROOT / "docs" / "how-to" / "ci.md"


def test_an_op_or_a_reference_is_named_and_not_both(tmp_path: Path) -> None:
    for names in ({}, {"op": "softmax", "reference": "reference.py"}):
        with pytest.raises(BadValue, match="name an op that ships"):
            check(RIGHT, **names)
    with pytest.raises(BadValue, match="can't be read"):
        check(tmp_path / "missing.py", "softmax")


@pytest.mark.slow
def test_the_guide_checks_a_kernel_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    (code,) = [block for block in blocks if "triton_magics.testing" in block]
    (tmp_path / "kernels").mkdir()
    kernel = tmp_path / "kernels" / "softmax.py"
    kernel.write_text(RIGHT.read_text())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRITON_MAGICS_SILENCE_S", "300")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "kernels"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "kernels"))  # of the engine's processes
    names: dict[str, object] = {}
    exec(code, names)
    names["test_softmax"]()  # type: ignore[operator]
    kernel.write_text(RIGHT.read_text().replace("tl.exp(", "tl.exp2("))
    with pytest.raises(AssertionError, match="elements wrong"):
        names["test_softmax"]()  # type: ignore[operator]
    assert list((tmp_path / "kernels").glob("triton_magics-*")) == []
    assert list(tmp_path.iterdir()) == [tmp_path / "kernels"]
