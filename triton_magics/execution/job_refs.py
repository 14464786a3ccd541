"""Ops and versions in a job: self-contained, so that any machine can load them."""

from __future__ import annotations

import hashlib
from typing import Self

from pydantic import model_validator

from triton_magics.model import Value


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class InputFile(Value):
    """A file with inputs of an op.

    Attributes:
        name: as the user wrote it; its end tells the format.
        data: the content, compressed by zlib, in base64.
    """

    name: str
    data: str


class OpRef(Value):
    """An op to load: a built-in by name, or the user's own by source.

    Attributes:
        source: the text of the user's `reference.py`; None for a built-in.
        sha256: hash of `source`.
        gradient_of: the op whose gradients it computes; the source is then that op's.
        inputs: in place of those that the op draws; it then has one size, `file`.
    """

    name: str
    source: str | None = None
    sha256: str | None = None
    gradient_of: str | None = None
    inputs: InputFile | None = None

    @model_validator(mode="after")
    def _check_hash(self) -> Self:
        if self.sha256 != (None if self.source is None else _digest(self.source)):
            raise ValueError(f"the source of {self.name} does not match its sha256")
        return self

    @classmethod
    def own(cls, name: str, source: str, *, gradient_of: str | None = None) -> Self:
        """Return a reference to an op of the user's own."""
        return cls(name=name, source=source, sha256=_digest(source), gradient_of=gradient_of)

    @property
    def shown_path(self) -> str:
        """Path of the file as shown to the user."""
        return f"{self.gradient_of or self.name}/reference.py"


class VersionRef(Value):
    """A version to load, self-contained so that another machine can run it.

    Attributes:
        source: the whole module, header included, so that line numbers match the user's file.
        sha256: hash of the body, which is the module without its header.
        entry: the function to call.
        header_lines: lines of `source` above the body.
        cell_offset: lines of the notebook's cell above the body.
        shown_path: the user's file, relative to the workspace; for messages only.
        language: name of the kernel language.
        op: decides how a raw kernel, a class or keyword-only parameters are called; None: they are
            called like any function.
    """

    version: str
    attempt: int
    source: str
    sha256: str
    entry: str
    header_lines: int
    cell_offset: int
    shown_path: str
    language: str = "triton"
    op: OpRef | None = None

    @model_validator(mode="after")
    def _check_hash(self) -> Self:
        if self.sha256 != _digest(self.body):
            raise ValueError(f"the source of {self.version} does not match its sha256")
        return self

    @property
    def body(self) -> str:
        """The module without its header: the cell's code."""
        return "".join(self.source.splitlines(keepends=True)[self.header_lines :])

    def cell_line(self, file_line: int) -> int:
        """Return the line in the notebook's cell (its magic is line 1) of a line of the file."""
        return file_line - self.header_lines + self.cell_offset


__all__ = ["InputFile", "OpRef", "VersionRef"]
