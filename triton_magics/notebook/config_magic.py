"""Make `%config TritonMagics.NAME = VALUE` fail its cell when a setting is refused."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from triton_magics.notebook import tracebacks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from triton_magics.errors import TritonMagicsError


class ConfigMagic:
    """IPython's `%config`, which by itself only logs the error of a setting."""

    def __init__(
        self,
        shell: Any,
        collect_errors: Callable[[], AbstractContextManager[Sequence[TritonMagicsError]]],
    ) -> None:
        """Keep the shell and the settings; `load` replaces the magic.

        Args:
            shell: the IPython shell.
            collect_errors: gives a list that the refused settings meanwhile are added to.
        """
        self._shell = shell
        self._collect_errors = collect_errors
        self._original: Any = None
        self._magic: Any = None

    def load(self) -> None:
        """Replace `%config` by one that raises what our settings refuse."""
        self._original = original = self._shell.find_line_magic("config")

        @functools.wraps(original)
        def config(line: str) -> Any:
            with self._collect_errors() as errors:
                value = original(line)
            if errors:
                raise tracebacks.explain_error(errors[0]) from None
            return value

        self._magic = config
        self._lines["config"] = config

    def unload(self) -> None:
        """Restore IPython's `%config`, unless another extension has replaced it."""
        if self._lines.get("config") is self._magic:
            self._lines["config"] = self._original

    @property
    def _lines(self) -> dict[str, Any]:
        lines: dict[str, Any] = self._shell.magics_manager.magics["line"]
        return lines
