"""The plain Python face: light to import, one lab behind every function."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import triton_magics as tm
import triton_magics.lab as lab_module
from tests.fake_executor import FakeExecutor
from triton_magics.config import Settings
from triton_magics.lab import Lab

ROOT = Path(tm.__file__).parent.parent
SOURCE = "def triton_softmax(x):\n    return x\n"


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    yield
    tm.configure(None)


@pytest.fixture
def engine(tmp_path: Path) -> FakeExecutor:
    """The engine of the default lab."""
    scripted = FakeExecutor()
    tm.use(Lab(tmp_path, engine=scripted))
    return scripted


def test_import_loads_no_other_module() -> None:
    code = (
        "import sys, __future__; before = set(sys.modules); import triton_magics\n"
        "print(sorted(set(sys.modules) - before))"
    )
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout == "['triton_magics']\n"


def test_version_equals_the_project_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert tm.__version__ == project["version"]


def test_every_verb_of_a_lab_is_a_function_with_its_signature(tmp_path: Path) -> None:
    for name in ("op", "write", "run", "validate", "bench", "best", "status", "ref", "template",
                 "reference", "inspect", "source", "attempts", "restore", "export"):  # fmt: skip
        function, method = getattr(tm, name), getattr(Lab, name)
        expected = list(inspect.signature(method).parameters.values())[1:]
        assert list(inspect.signature(function).parameters.values()) == expected
        assert function.__doc__ == method.__doc__
    assert tm.open_lab() is None
    assert list(tmp_path.iterdir()) == []


def test_functions_share_the_default_lab(engine: FakeExecutor) -> None:
    tm.write("softmax", "v1", SOURCE, compile=False)
    value = tm.validate("softmax", "v1")
    assert tm.default_lab().last is value
    assert tm.bench("softmax").versions == ("v1_baseline",)
    assert len(engine.jobs) == 2


def test_a_used_lab_replaces_a_default_that_is_being_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    users_lab = Lab(tmp_path / "users_lab", engine=FakeExecutor())
    in_time = threading.Event()
    user = threading.Thread(target=lambda: (tm.use(users_lab), in_time.set()))

    def make_default(settings: Settings | None) -> Lab:
        user.start()
        in_time.wait(0.2)  # with the lock it waits for the default, which it then replaces
        return Lab(tmp_path / "default", engine=FakeExecutor(), settings=settings)

    monkeypatch.setattr(lab_module, "Lab", make_default)
    tm.default_lab()
    user.join()
    assert tm.open_lab() is users_lab


def test_default_lab_is_in_the_current_folder(tmp_path: Path) -> None:
    assert tm.default_lab() is tm.default_lab()
    assert tm.default_lab().path == tmp_path.resolve()


def test_configure_makes_a_new_default_lab(engine: FakeExecutor, tmp_path: Path) -> None:
    tm.configure(Settings(workspace=str(tmp_path / "other")))
    assert engine.closed == 1
    assert tm.default_lab().path == tmp_path.resolve() / "other"


def test_use_of_the_default_lab_does_not_close_it(engine: FakeExecutor) -> None:
    tm.use(tm.default_lab())
    assert engine.closed == 0
    tm.close()
    tm.close()
    assert engine.closed == 1


def test_show_prints_the_text_of_a_terminal(
    engine: FakeExecutor, capsys: pytest.CaptureFixture[str]
) -> None:
    tm.show(tm.ref("overview"))
    printed = capsys.readouterr().out
    assert printed.startswith("Overview")
    assert printed.endswith("\n")
    assert not printed.endswith("\n\n")


def test_show_refuses_other_types() -> None:
    with pytest.raises(TypeError, match="int has no view"):
        tm.show(3)


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'benchh'"):
        _ = tm.benchh
    assert {"bench", "Lab", "show"} <= set(dir(tm))


def test_a_package_is_imported_before_a_module_that_it_imports() -> None:
    """Else two threads can each hold the import lock that the other one waits for."""
    root = Path(tm.__file__).parent
    imports = {}
    for path in root.rglob("*.py"):
        parts = path.relative_to(root.parent).with_suffix("").parts
        nodes = ast.parse(path.read_text(encoding="utf-8")).body
        module = ".".join(parts).removesuffix(".__init__")
        imports[module] = [n.module or "" for n in nodes if isinstance(n, ast.ImportFrom)]
    early = []
    for module, names in imports.items():
        for position, name in enumerate(names):
            package = ".".join(name.split(".")[:2])
            is_outside = module != package and not module.startswith(f"{package}.")
            if is_outside and name in imports.get(package, ()) and name != package:
                early += [(module, name)] * (package not in names[:position])
    assert early == []
