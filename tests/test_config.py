"""The sources of settings, and the errors of refused ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fake_executor import FakeExecutor
from triton_magics.config import (
    Settings,
    check_setting,
    from_environment,
    from_pyproject,
    read_settings,
)
from triton_magics.errors import BadValue, UnknownName
from triton_magics.lab import Lab


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A workspace whose pyproject.toml says how it is worked in."""
    text = "[tool.triton_magics]\nstrict = true\nmin_writes = 5\nsilence_s = 7\n"
    (tmp_path / "pyproject.toml").write_text(text)
    return tmp_path


def test_environment_overrides_pyproject_and_defaults(project: Path) -> None:
    values = read_settings(project, {"TRITON_MAGICS_MIN_WRITES": "2", "HOME": "/"})
    assert values == {"strict": True, "min_writes": 2, "silence_s": 7.0}
    assert Settings().min_writes == 3


def test_python_arguments_override_all_sources(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_MAGICS_MIN_WRITES", "2")
    engine: Any = FakeExecutor()
    with Lab(project, engine=engine) as lab:
        assert (lab.settings.min_writes, lab.settings.strict) == (2, True)
    with Lab(project, engine=engine, settings=Settings(min_writes=4)) as lab:
        assert (lab.settings.min_writes, lab.settings.strict) == (4, False)
    with Lab(project, engine=engine, strict=False) as lab:
        assert lab.session.is_strict is False


def test_environment_selects_the_workspace_of_pyproject(
    project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    monkeypatch.setenv("TRITON_MAGICS_WORKSPACE", str(project))
    engine: Any = FakeExecutor()
    with Lab(engine=engine) as lab:
        assert lab.path == project.resolve()
        assert lab.settings.min_writes == 5


def test_folder_without_a_table_sets_nothing(tmp_path: Path) -> None:
    assert from_pyproject(tmp_path) == {}
    (tmp_path / "pyproject.toml").write_text("[tool.ruff]\nline-length = 100\n")
    assert from_pyproject(tmp_path) == {}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("strct = true", "no setting 'strct'. Did you mean 'strict'? Known: auto_log"),
        ("strict = 'yes'", "strict must be true or false, not 'yes'"),
        ("min_writes = 0", "min_writes must be a whole number from 1, not 0"),
        ("min_writes = 2.5", "min_writes must be a whole number from 1, not 2.5"),
        ("min_writes = true", "min_writes must be a whole number from 1, not True"),
        ("silence_s = nan", "silence_s must be a number from 0.1, not nan"),
        ("target = 300", "target must be a whole number from 70 to 130, not 300"),
        ("device = 'cuda'", "device must be one of 'auto', 'gpu', 'interpreter', not 'cuda'"),
        ("workspace = 'x'", "can't be set in its own file. Set TRITON_MAGICS_WORKSPACE"),
        ("strict = ", "can't be read"),
    ],
)
def test_pyproject_with_a_refused_setting_is_an_error(
    tmp_path: Path, table: str, message: str
) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text(f"[tool.triton_magics]\n{table}\n")
    with pytest.raises((BadValue, UnknownName)) as raised:
        Lab(tmp_path)
    assert message in str(raised.value)
    assert str(path) in str(raised.value)
    assert [p.name for p in tmp_path.iterdir()] == ["pyproject.toml"]


def test_pyproject_value_in_place_of_a_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("tool.triton_magics = 3\n")
    with pytest.raises(BadValue, match="must be a table of settings"):
        from_pyproject(tmp_path)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("STRCT", "1", "TRITON_MAGICS_STRCT: no setting 'strct'. Did you mean 'strict'?"),
        ("STRICT", "maybe", "TRITON_MAGICS_STRICT: strict must be true or false, not 'maybe'"),
        ("JOB_S", "soon", "TRITON_MAGICS_JOB_S: job_s must be a number from 0.1, not 'soon'"),
        ("JOB_S", "inf", "TRITON_MAGICS_JOB_S: job_s must be a number from 0.1, not 'inf'"),
        ("DEVICE", "cuda", "device must be one of 'auto', 'gpu', 'interpreter', not 'cuda'"),
    ],
)
def test_environment_with_a_refused_setting_is_an_error(name: str, text: str, message: str) -> None:
    with pytest.raises((BadValue, UnknownName)) as raised:
        from_environment({f"TRITON_MAGICS_{name}": text})
    assert message in str(raised.value)


def test_environment_text_gets_the_type_of_its_setting() -> None:
    message = {"STRICT": "true", "MIN_WRITES": "4", "JOB_S": "10", "DEVICE": "gpu", "CACHE": "/tmp"}
    assert from_environment({f"TRITON_MAGICS_{k}": v for k, v in message.items()}) == {
        "strict": True, "min_writes": 4, "job_s": 10.0, "device": "gpu",
    }  # fmt: skip


def test_refused_python_argument_has_the_same_message() -> None:
    with pytest.raises(UnknownName, match=r"Settings: no setting 'jobs_s'\. Did you mean 'job_s'"):
        Settings(jobs_s=3)
    with pytest.raises(BadValue, match=r"Settings: job_s must be a number from 0\.1, not -1"):
        Settings(job_s=-1)


@pytest.mark.parametrize("name", sorted(Settings.class_traits(config=True)))
def test_every_setting_can_be_set_in_the_environment(name: str) -> None:
    default = getattr(Settings(), name)
    assert check_setting(name, str(default), "here", is_text=True) == default


def test_the_variable_of_metrics_is_no_setting() -> None:
    assert from_environment({"TRITON_MAGICS_METRICS": "true"}) == {}
