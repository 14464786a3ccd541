"""The commands `triton-magics skill` and `triton-magics setup`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from triton_magics.errors import BadValue
from triton_magics.serve import agent_files
from triton_magics.serve.agent_files import FileChange

AGENTS = ("claude", "codex", "cursor", "vscode")
_SKILL_FOLDERS = {"claude": ".claude/skills", "codex": ".agents/skills"}


def add_commands(commands: Any) -> None:
    """Add both commands to a parser's subcommands."""
    text = "Install the skill for agents, SKILL.md, into a folder of skills."
    skill = commands.add_parser("skill", help=text, description=text, allow_abbrev=False)
    skill.add_argument("folder", metavar="DIR", help="such as .claude/skills")
    skill.add_argument("--force", action="store_true", help="overwrite another SKILL.md there")
    skill.set_defaults(function=install_skill)
    text = "Tell an agent's program how to start the MCP server: shows the change, asks, writes."
    setup = commands.add_parser("setup", help=text, description=text, allow_abbrev=False)
    setup.add_argument("--agent", choices=AGENTS, required=True, help="whose configuration")
    setup.add_argument("--remote", metavar="HOST", help="start the server there, by ssh")
    setup.add_argument("--workspace", metavar="DIR", help="folder of kernels/ and logs/ there")
    setup.add_argument("--project", metavar="DIR", default=".", help="the agent's folder: .")
    setup.add_argument("--undo", action="store_true", help="remove what an earlier setup added")
    setup.add_argument("--yes", action="store_true", help="don't ask")
    setup.set_defaults(function=set_up)


def install_skill(words: argparse.Namespace) -> int:
    """Write SKILL.md; return the exit code."""
    change = agent_files.skill_change(Path(words.folder), force=words.force)
    change.write()
    _say(str(change.path))
    return 0


def set_up(words: argparse.Namespace) -> int:
    """Show the changes, ask, and write them; return the exit code.

    Raises:
        BadValue: a value or file is not as expected; nothing was written.
    """
    changes = [change for change in _changes(words) if not change.is_empty]
    if not changes:
        _say("nothing to change")
        return 0
    for change in changes:
        _say(change.diff)
    if not words.yes and not _is_confirmed():
        _say("nothing was written")
        return 0
    for change in changes:
        change.write()
        _say(f"{'removed' if change.after is None else 'written'}: {change.path}")
    return 0


def _changes(words: argparse.Namespace) -> list[FileChange]:
    project = Path(words.project)
    if not project.is_dir():
        raise BadValue(f"--project {words.project}: there is no such folder")
    command = agent_files.server_command(words.remote, words.workspace)
    changes = [agent_files.config_change(words.agent, project, command, undo=words.undo)]
    if folder := _SKILL_FOLDERS.get(words.agent):
        changes.append(agent_files.skill_change(project / folder, undo=words.undo))
    return changes


def _is_confirmed() -> bool:
    sys.stdout.write("write this? [y/N] ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


__all__ = ["add_commands", "install_skill", "set_up"]
