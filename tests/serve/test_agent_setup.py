"""`triton-magics skill` and `setup`: what they write into an agent's files, and take back."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from scripts import release_check
from triton_magics.cli import main
from triton_magics.serve.agent_files import SKILL
from triton_magics.serve.mcp_tools import tools

ROOT = Path(__file__).parents[2]
PLACES = {"claude": ".mcp.json", "cursor": ".cursor/mcp.json", "vscode": ".vscode/mcp.json"}


def entry(path: Path, agent: str) -> dict[str, object]:
    key = "servers" if agent == "vscode" else "mcpServers"
    return json.loads(path.read_text())[key]["triton-magics"]


@pytest.mark.parametrize("agent", PLACES)
def test_setup_adds_one_entry_and_undo_removes_it(tmp_path: Path, agent: str) -> None:
    path = tmp_path / PLACES[agent]
    path.parent.mkdir(exist_ok=True)
    other = {"servers" if agent == "vscode" else "mcpServers": {"other": {"command": "x"}}, "a": 1}
    before = json.dumps(other, indent=2) + "\n"
    path.write_text(before)
    line = ["setup", "--agent", agent, "--project", str(tmp_path), "--yes"]
    assert main(line) == 0
    assert entry(path, agent)["args"][-1] == "mcp"
    assert json.loads(path.read_text())["a"] == 1
    assert main(line) == 0  # a second time changes nothing
    assert main([*line, "--undo"]) == 0
    assert path.read_text() == before
    assert not list(tmp_path.rglob("triton-kernels"))


def test_setup_for_codex_keeps_comments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    path = tmp_path / "config.toml"
    before = '# mine\nmodel = "x"\n\n[mcp_servers.other]\ncommand = "y"\n'
    path.write_text(before)
    line = ["setup", "--agent", "codex", "--project", str(tmp_path), "--yes"]
    assert main([*line, "--remote", "gpu-box"]) == 0
    servers = tomllib.loads(path.read_text())["mcp_servers"]
    assert servers["triton-magics"]["command"] == "ssh"
    assert servers["triton-magics"]["args"][-3:] == ["gpu-box", "triton-magics", "mcp"]
    assert servers["triton-magics"]["tool_timeout_sec"] == 120
    assert path.read_text().startswith(before)
    assert main([*line, "--undo"]) == 0
    assert path.read_text() == before


def test_setup_shows_the_change_and_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin.readline", lambda: "n\n", raising=False)
    assert main(["setup", "--agent", "claude", "--project", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert '+    "triton-magics": {' in shown
    assert "write this? [y/N]" in shown
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["--remote", "-oProxyCommand=x"], "--remote"),
        (["--remote", "box; rm"], "write a host of your ssh"),
        (["--remote", "box", "--workspace", "a b;c"], "--workspace"),
        (["--project", "/nowhere"], "there is no such folder"),
    ],
)
def test_setup_refuses_bad_values(
    tmp_path: Path, line: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = ["--project", str(tmp_path)] if "--project" not in line else []
    code = main(["setup", "--agent", "claude", "--yes", *folder, *(w for w in join_words(line))])
    assert code == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def join_words(line: list[str]) -> list[str]:
    return [f"{name}={value}" for name, value in zip(line[::2], line[1::2], strict=True)]


def test_a_file_that_is_no_json_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / ".mcp.json"
    path.write_text("// a comment\n{}\n")
    assert main(["setup", "--agent", "claude", "--project", str(tmp_path), "--yes"]) == 2
    assert '"triton-magics"' in capsys.readouterr().err  # the lines to add by hand
    assert path.read_text() == "// a comment\n{}\n"


def test_the_skill_is_installed_and_never_over_another_file(tmp_path: Path) -> None:
    assert main(["skill", str(tmp_path)]) == 0
    path = tmp_path / "triton-kernels" / "SKILL.md"
    assert path.read_text() == SKILL.read_text()
    assert main(["skill", str(tmp_path)]) == 0
    path.write_text("mine")
    assert main(["skill", str(tmp_path)]) == 2
    assert path.read_text() == "mine"
    assert main(["skill", str(tmp_path), "--force"]) == 0


def test_the_skill_names_tools_and_fields_that_exist() -> None:
    head, body = SKILL.read_text().split("\n---\n", 1)
    assert head.splitlines()[1] == "name: triton-kernels"
    assert len(body.splitlines()) < 500
    names = {tool.name for tool in tools()}
    used = {word.strip("`").partition("(")[0] for word in body.split() if word.startswith("`")}
    assert {"validate_correctness", "get_job_status", "sweep", "inspect"} <= used & names


def test_the_registry_entry_fits_the_package() -> None:
    document = json.loads((ROOT / "server.json").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    package = document["packages"][0]
    assert document["version"] == package["version"] == project["version"]
    assert package["identifier"] == project["name"]
    assert len(document["description"]) <= 100
    assert f"mcp-name: {document['name']}" in (ROOT / "README.md").read_text()


def test_the_registry_entry_needs_the_owner_of_the_repository() -> None:
    name = json.loads((ROOT / "server.json").read_text())["name"]
    owner = name.partition("/")[0].removeprefix("io.github.")
    release_check.check_owner(f"https://github.com/{owner.title()}/triton-magics")
    with pytest.raises(release_check.Fault, match="owner is somebody"):
        release_check.check_owner("https://github.com/somebody/triton-magics")
