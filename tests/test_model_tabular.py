"""Values as dicts, rows and text."""

import json
import sys

import pytest
import report_values as rv

from tests.fake_executor import FakeExecutor
from triton_magics.errors import Unavailable
from triton_magics.lab import Lab


def test_rows_of_a_benchmark_have_its_means() -> None:
    value = rv.benchmark(2)
    rows = value.to_records()
    assert len(rows) == 9  # torch and two versions, at three sizes
    (row,) = [r for r in rows if (r["provider"], r["size"]) == ("v2_tiling", "large")]
    assert sum(row["samples_us"]) / len(row["samples_us"]) == pytest.approx(33.1)


def test_rows_of_a_validation_name_shape_and_status() -> None:
    rows = rv.wrong_validation().to_records()
    assert len(rows) == 14
    assert {r["status"] for r in rows} == {"passed", "wrong_values"}
    wrong = next(r for r in rows if r["status"] == "wrong_values")
    assert wrong["case.shape"] == [257, 1023]
    assert wrong["mismatch.n_wrong"] == 257


def test_rows_of_a_sweep_have_a_column_per_setting() -> None:
    rows = rv.sweep().to_records()
    assert {"settings.BLOCK_SIZE", "settings.num_warps", "status"} <= set(rows[0])


def test_a_dict_is_json() -> None:
    value = rv.sweep()
    assert type(value).model_validate(json.loads(json.dumps(value.to_dict()))) == value


def test_without_pandas_one_line_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(Unavailable, match="pip install pandas"):
        rv.benchmark().to_dataframe()


def test_a_printed_value_is_its_text_and_tab_lists_its_fields(
    tmp_path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Lab(tmp_path, engine=FakeExecutor()) as lab:
        lab.op("relu")
        lab.write("relu", "v1", "def solve(x):\n    return x\n")
        value = lab.validate("relu", "v1")
        print(value)
    shown = capsys.readouterr().out
    assert shown.startswith("✓ RIGHT  relu v1: ")
    assert "tm.bench('relu', 'v1')" in shown
    assert len(shown.splitlines()) <= 41
    assert repr(value).startswith("Validation(")
    names = [name for name in dir(value) if not name.startswith("_")]
    assert {"cases", "to_dataframe", "failed_cases"} <= set(names)
    assert not {"json", "parse_obj", "construct", "copy", "dict"} & set(names)
