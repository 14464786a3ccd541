"""Logs of the server: one JSON object a line, so that no text of a client can forge a line."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
MAX_CHARS = 2_000  # of a text
_OWN = frozenset(vars(logging.LogRecord("", 0, "", 0, "", (), None))) | {
    "message",
    "asctime",
    "color_message",
}
_NAMES = ("triton_magics", "worker", "uvicorn")


class JsonFormatter(logging.Formatter):
    """Writes a record with its extra fields: job, client, path."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage()[:MAX_CHARS],
        }
        line |= {k: _short(v) for k, v in vars(record).items() if k not in _OWN and v is not None}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)[-MAX_CHARS * 4 :]
        return json.dumps(line, default=str)


def _short(value: Any) -> Any:
    return value[:MAX_CHARS] if isinstance(value, str) else value


def configure(level: str) -> None:
    """Write the logs of the server to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    for name in _NAMES:
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(level)


__all__ = ["LEVELS", "JsonFormatter", "configure"]
