"""Settings: what a user may set, and the four places where it can be set.

The nearer to the work, the stronger: `%config TritonMagics.name = value` and `Settings(name=...)`,
then the environment (`TRITON_MAGICS_NAME`), then `[tool.triton_magics]` in the workspace's
pyproject.toml, then a profile of IPython, then the default.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from traitlets import Bool, Enum, Float, Int, TraitError, TraitType, Unicode
from traitlets.config import Configurable

from triton_magics.errors import BadValue, UnknownName, did_you_mean

PREFIX = "TRITON_MAGICS_"
_NO_SETTINGS = ("cache", "parent", "screenshots")  # what else of the environment is ours
_TABLE = "[tool.triton_magics]"


class Settings(Configurable):
    """What a user may set; each has its default here and nowhere else.

    Raises:
        UnknownName: no such setting.
        BadValue: of the wrong type or out of its range.
    """

    workspace = Unicode("", help="Folder of kernels/ and logs/; empty: where the notebook is.").tag(
        config=True
    )
    strict = Bool(False, help="Steps that the workflow does not allow are errors.").tag(config=True)
    min_writes = Int(3, min=1, help="Distinct versions before an op may end.").tag(config=True)
    device = Enum(
        ("auto", "gpu", "interpreter"), "auto", help="`auto`, `gpu` or `interpreter`."
    ).tag(config=True)
    target = Int(
        90, min=70, max=130, help="Compute capability to cross-compile for where there is no GPU."
    ).tag(config=True)
    silence_s = Float(20.0, min=0.1, help="Seconds without progress before a job is killed.").tag(
        config=True
    )
    compile_s = Float(120.0, min=0.1, help="The same while it compiles or autotunes.").tag(
        config=True
    )
    job_s = Float(300.0, min=0.1, help="Seconds that a whole job may take.").tag(config=True)
    validate_budget_s = Float(
        20.0, min=0.1, help="Seconds of CPU time for one validation in the interpreter."
    ).tag(config=True)
    bench_budget_s = Float(60.0, min=0.1, help="Seconds that one benchmark may take.").tag(
        config=True
    )
    host_memory_gib = Float(
        0.0, min=0.0, help="GiB that a worker may take; 0: three quarters of the machine's memory."
    ).tag(config=True)
    standbys = Int(
        2, min=1, max=16, help="Warm workers that wait for a job; on a GPU each has a context."
    ).tag(config=True)
    history = Bool(True, help="Write logs/<op>_log.jsonl as things happen.").tag(config=True)

    def __init__(self, **values: Any) -> None:
        own = {name: value for name, value in values.items() if name not in ("parent", "config")}
        for name, value in own.items():
            values[name] = checked(name, value, "Settings")
        super().__init__(**values)

    @classmethod
    def found(cls, folder: str | Path | None = None) -> Self:
        """What the environment and the workspace's pyproject.toml say.

        Args:
            folder: the workspace; by default the environment's, else this one.

        Raises:
            UnknownName, BadValue: one of them says what can't be; the message says which.
        """
        return cls(**found(folder))


def found(
    folder: str | Path | None = None, environ: Mapping[str, str] = os.environ
) -> dict[str, Any]:
    """The settings that the environment and, below it, the workspace's pyproject.toml name.

    Args:
        folder: the workspace; by default the environment's, else this one.
        environ: in place of the process's own.
    """
    of_environment = from_environment(environ)
    workspace = Path(folder or of_environment.get("workspace") or ".").expanduser()
    return {**from_pyproject(workspace), **of_environment}


def from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    """`{"strict": True}` of `TRITON_MAGICS_STRICT=1`."""
    named = {k.removeprefix(PREFIX).lower(): v for k, v in environ.items() if k.startswith(PREFIX)}
    return {
        name: checked(name, text, f"{PREFIX}{name.upper()}", written=True)
        for name, text in named.items()
        if name not in _NO_SETTINGS
    }


def from_pyproject(folder: Path) -> dict[str, Any]:
    """What the pyproject.toml of a folder sets; nothing where it has none.

    Raises:
        BadValue: it is no TOML, or names a workspace, which is where it lies.
    """
    path = folder / "pyproject.toml"
    if not path.is_file():
        return {}
    import tomllib  # not needed by most

    try:
        whole = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadValue(f"{path} can't be read: {error}") from error
    tool = whole.get("tool", {})
    table = tool.get("triton_magics", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        raise BadValue(f"{path}: triton_magics is a table of settings, {_TABLE}, not {table!r}")
    if "workspace" in table:
        raise BadValue(
            f"{_TABLE} in {path}: it is the workspace's own, so it can't name one; use "
            f"%config TritonMagics.workspace or {PREFIX}WORKSPACE"
        )
    return {name: checked(name, value, f"{_TABLE} in {path}") for name, value in table.items()}


def checked(name: str, value: Any, where: str, *, written: bool = False) -> Any:
    """The value, as the setting holds it.

    Args:
        name: of the setting.
        value: what it shall be.
        where: who says so, for the message.
        written: it is text, as the environment has it.

    Raises:
        UnknownName: no such setting; with the nearest there is.
        BadValue: not what it may be; with what it may be.
    """
    traits = Settings.class_traits(config=True)
    if name not in traits:
        hint = did_you_mean(name, traits)
        raise UnknownName(f"{where}: no setting {name!r}.{hint} Known: {', '.join(sorted(traits))}")
    try:
        read = traits[name].from_string(value) if written else value
        tried = Settings()
        setattr(tried, name, read)
        _refuse_odd_numbers(traits[name], read)
    except (TraitError, ValueError) as error:
        raise BadValue(f"{where}: {name} is {_allowed(traits[name])}, not {value!r}") from error
    return getattr(tried, name)


def _refuse_odd_numbers(trait: TraitType[Any, Any], value: Any) -> None:
    """What Python takes for a number and nobody means by one: True, nan, inf."""
    if isinstance(trait, Int | Float) and (isinstance(value, bool) or not math.isfinite(value)):
        raise ValueError(value)


def _allowed(trait: TraitType[Any, Any]) -> str:
    """`a whole number from 70 to 130`."""
    if isinstance(trait, Enum):
        return f"one of {', '.join(map(repr, trait.values or ()))}"
    if isinstance(trait, Bool):
        return "true or false"
    if not isinstance(trait, Int | Float):
        return "text"
    kind = "a whole number" if isinstance(trait, Int) else "a number"
    ends = [f" from {trait.min:g}" if trait.min is not None else ""]
    ends.append(f" to {trait.max:g}" if trait.max not in (None, float("inf")) else "")
    return kind + "".join(ends)


LOCKS = Path("/tmp/triton_magics-locks")  # noqa: S108 (shared by all users, on purpose)


def cache_dir() -> Path:
    """Where compiled kernels, measured ceilings and locks are kept: local disk, per user."""
    base = os.environ.get("TRITON_MAGICS_CACHE") or os.environ.get("XDG_CACHE_HOME")
    return Path(base) / "triton_magics" if base else Path.home() / ".cache" / "triton_magics"
