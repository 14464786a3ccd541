"""The tokens of clients: a file of this user's own, one client and token on each line."""

from __future__ import annotations

import hmac
import os
import re
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path

from triton_magics.errors import BadValue

FIRST_CLIENT = "default"
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_LEAST = 24  # characters of a token


class Tokens:
    """The tokens that a server accepts.

    Args:
        by_client: name of a client -> its token.
    """

    def __init__(self, by_client: Mapping[str, str]) -> None:
        self._by_client = {name: token.encode() for name, token in by_client.items()}

    def client_of(self, token: bytes) -> str | None:
        """Return the client of a token, or None; the time does not depend on the token."""
        client = None
        for name, own in self._by_client.items():
            if hmac.compare_digest(own, token):
                client = name
        return client


def default_path() -> Path:
    """Return the path of the user's token file."""
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "triton-magics" / "tokens"


def create_file(path: Path) -> bool:
    """Create a token file with one random token of 256 bits; False if there is a file already.

    Raises:
        BadValue: it can't be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        return False
    except OSError as error:
        raise BadValue(f"the token file {path} can't be written: {error.strerror}") from error
    with os.fdopen(file, "w") as stream:
        stream.write(f"{FIRST_CLIENT} {secrets.token_urlsafe(32)}\n")
    return True


def read_file(path: Path) -> Tokens:
    """Return the tokens of a file.

    Raises:
        BadValue: it can't be read, others can read it, or a line is not a name and a token.
    """
    try:
        mode = path.stat().st_mode
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadValue(f"the token file {path} can't be read: {error}") from error
    if stat.S_IMODE(mode) & 0o077:
        raise BadValue(f"other users can read the token file: chmod 600 {path}")
    tokens: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        name, _, token = line.strip().partition(" ")
        token = token.strip()
        if not _NAME.fullmatch(name) or len(token) < _LEAST or " " in token or name in tokens:
            raise BadValue(
                f"{path}, line {number}: write a name of its own, a space and a token of at least "
                f"{_LEAST} characters"
            )
        tokens[name] = token
    if not tokens:
        raise BadValue(f"the token file {path} has no token; remove it, and the server makes one")
    return Tokens(tokens)


__all__ = ["Tokens", "create_file", "default_path", "read_file"]
