"""The files in which an agent's program finds the MCP server and the skill. Pure but for `write`.

A change adds or removes our own entry and leaves the rest of a file as it is.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from triton_magics.errors import BadValue, ExportError

Agent = Literal["claude", "codex", "cursor", "vscode"]
NAME = "triton-magics"
SKILL_FOLDER = "triton-kernels"
SKILL = Path(__file__).parent / "skill" / "SKILL.md"
_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@:-]*")
_SSH = ("-o", "BatchMode=yes", "-o", "ServerAliveInterval=15")


@dataclass(frozen=True)
class FileChange:
    """A change of one file.

    Attributes:
        path: of the file.
        before: its text; None where it does not exist.
        after: its text afterwards; None: the file is removed.
    """

    path: Path
    before: str | None
    after: str | None

    @property
    def is_empty(self) -> bool:
        """True where there is nothing to do."""
        return self.before == self.after

    @property
    def diff(self) -> str:
        """The change as `diff -u` writes it."""
        before, after = (self.before or "").splitlines(), (self.after or "").splitlines()
        return "\n".join(difflib.unified_diff(before, after, str(self.path), "new", lineterm=""))

    def write(self) -> None:
        """Carry the change out: the whole file or nothing.

        Raises:
            ExportError: the file can't be written.
        """
        try:
            if self.after is None:
                self.path.unlink(missing_ok=True)
                if self.path.parent.name == SKILL_FOLDER:
                    with suppress(OSError):  # another file is there
                        self.path.parent.rmdir()
                return
            self.path.parent.mkdir(parents=True, exist_ok=True)
            target = self.path.resolve()  # a link stays a link
            with tempfile.NamedTemporaryFile("w", dir=target.parent, delete=False) as file:
                file.write(self.after)
            mode = target.stat().st_mode & 0o777 if target.exists() else 0o644
            os.chmod(file.name, mode)
            os.replace(file.name, target)
        except OSError as error:
            raise ExportError(f"{self.path} can't be written: {error.strerror}") from error


def server_command(remote: str | None, workspace: str | None) -> tuple[str, ...]:
    """Return the command that starts the server, here or on another machine by ssh.

    Args:
        remote: host, as ssh takes it; None: this machine.
        workspace: folder of kernels/ and logs/ there; None: where the agent starts it.

    Raises:
        BadValue: a host or folder that ssh or the shell there would read otherwise.
    """
    folder = ("--workspace", workspace) if workspace else ()
    if remote is None:
        program = Path(sys.executable).with_name(NAME)
        start = (str(program),) if program.is_file() else (sys.executable, "-m", "triton_magics")
        return (*start, "mcp", *folder)
    if not _HOST.fullmatch(remote):
        raise BadValue(f"--remote {remote!r}: write a host of your ssh, such as gpu-box or me@box")
    if workspace and not re.fullmatch(r"[\w./~-]+", workspace):
        raise BadValue(f"--workspace {workspace!r}: write a path of letters, digits, . _ - and /")
    return ("ssh", *_SSH, remote, NAME, "mcp", *folder)


def skill_change(folder: Path, *, undo: bool = False, force: bool = False) -> FileChange:
    """Return the change that puts SKILL.md into a folder of skills, or removes it.

    Raises:
        BadValue: another file stands there, and it is not to be overwritten.
    """
    path = folder / SKILL_FOLDER / "SKILL.md"
    before, after = _read(path), SKILL.read_text(encoding="utf-8")
    is_ours = before is None or before.startswith(f"---\nname: {SKILL_FOLDER}\n")
    if not is_ours and not force:
        raise BadValue(f"{path} is another file; --force overwrites it")
    return FileChange(path, before, None if undo else after)


def config_change(
    agent: Agent, folder: Path, command: tuple[str, ...], *, undo: bool = False
) -> FileChange:
    """Return the change of an agent's configuration.

    Args:
        agent: whose.
        folder: of the project; Codex has one file for all projects.
        command: starts the server.
        undo: remove the entry.

    Raises:
        BadValue: the file can't be read as JSON or TOML; the message has the lines to add by hand.
    """
    if agent == "codex":
        home = Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex")
        return _toml_change(home / "config.toml", command, undo=undo)
    place, key = _JSON_FILES[agent]
    entry: dict[str, Any] = {"command": command[0], "args": list(command[1:])}
    entry = {"type": "stdio", **entry} if agent == "vscode" else entry
    return _json_change(folder / place, key, entry, undo=undo)


_JSON_FILES: Mapping[str, tuple[str, str]] = {
    "claude": (".mcp.json", "mcpServers"),
    "cursor": (".cursor/mcp.json", "mcpServers"),
    "vscode": (".vscode/mcp.json", "servers"),
}


def _json_change(path: Path, key: str, entry: dict[str, Any], *, undo: bool) -> FileChange:
    before = _read(path)
    example = json.dumps({key: {NAME: entry}}, indent=2)
    try:
        document = json.loads(before) if before and before.strip() else {}
        servers = document.setdefault(key, {})
        servers.pop(NAME, None)
    except (ValueError, AttributeError, TypeError) as error:
        text = f"{path} is not the JSON that was expected ({error}). By hand:\n{example}"
        raise BadValue(text) from error
    if not undo:
        servers[NAME] = entry
    if undo and not servers:
        del document[key]
    after = json.dumps(document, indent=2, ensure_ascii=False) + "\n" if document else None
    if undo and before is None:
        after = None
    return FileChange(path, before, after)


def _toml_change(path: Path, command: tuple[str, ...], *, undo: bool) -> FileChange:
    """Change the table by its lines, so that comments and order of the file stay."""
    before = _read(path)
    table = (
        f"[mcp_servers.{NAME}]\n"
        f"command = {json.dumps(command[0])}\n"
        f"args = {json.dumps(list(command[1:]))}\n"
        "startup_timeout_sec = 60\n"
        "tool_timeout_sec = 120\n"
    )
    try:
        tomllib.loads(before or "")
    except tomllib.TOMLDecodeError as error:
        raise BadValue(f"{path} is not TOML ({error}). By hand:\n{table}") from error
    rest = re.sub(rf"(?ms)^\[mcp_servers\.\"?{NAME}\"?\]\n.*?(?=^\[|\Z)", "", before or "")
    rest = rest.rstrip("\n") + "\n" if rest.strip() else ""
    gap = "\n" if rest else ""
    after = rest or None if undo else f"{rest}{gap}{table}"
    return FileChange(path, before, after)


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise BadValue(f"{path} can't be read: {error}") from error


__all__ = ["SKILL", "Agent", "FileChange", "config_change", "server_command", "skill_change"]
