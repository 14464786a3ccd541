"""The settings, and the places where a user can set them.

The first of these that has a value counts: `%config TritonMagics.name = value` and
`Settings(name=...)`, the environment (`TRITON_MAGICS_NAME`), `[tool.triton_magics]` in the
workspace's pyproject.toml, a profile of IPython, the default.
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
_OTHER_VARIABLES = (
    "cache",
    "cores",
    "metrics",
    "parent",
    "sandbox_rules",
    "screenshots",
    "token",
)  # variables of ours that are not settings
_TABLE = "[tool.triton_magics]"


class Settings(Configurable):
    """The settings of a user, with their defaults.

    Raises:
        UnknownName: no such setting.
        BadValue: the value has the wrong type or is out of range.
    """

    workspace = Unicode("", help="Folder of kernels/ and logs/; empty: where the notebook is.").tag(
        config=True
    )
    strict = Bool(False, help="Steps that the workflow does not allow are errors.").tag(config=True)
    min_writes = Int(3, min=1, help="Distinct versions before an op may end.").tag(config=True)
    auto_log = Bool(False, help="Write the op's log after each verdict.").tag(config=True)
    device = Enum(
        ("auto", "gpu", "interpreter"), "auto", help="`auto`, `gpu` or `interpreter`."
    ).tag(config=True)
    gpus = Unicode(
        "", help="GPUs for the jobs: `all`, or indices and UUIDs as in `0,1`; empty: the first."
    ).tag(config=True)
    lanes = Int(
        0,
        min=0,
        max=16,
        help="Jobs at the same time on each device; a timing always runs alone. 0: one, and on a "
        "GPU more while many wait, one for eight CPU cores.",
    ).tag(config=True)
    pin_cores = Bool(
        False, help="Run the workers of a GPU on the CPU cores of its NUMA node, where it is known."
    ).tag(config=True)
    engine = Unicode(
        "local",
        help="What runs kernels: `local`, `ssh://HOST`, `https://HOST:PORT`, `dask`, or an "
        "installed one.",
    ).tag(config=True)
    token_file = Unicode(
        "",
        help="File with the token of an `https://` engine; empty: TRITON_MAGICS_TOKEN, else "
        "~/.config/triton-magics/tokens.",
    ).tag(config=True)
    scheduler = Unicode(
        "", help="Of `dask`: its scheduler's address, or `local` for a cluster of this machine."
    ).tag(config=True)
    target = Int(
        90, min=70, max=130, help="Compute capability to cross-compile for where there is no GPU."
    ).tag(config=True)
    silence_s = Float(20.0, min=0.1, help="Seconds without progress before a job is killed.").tag(
        config=True
    )
    compile_s = Float(
        120.0, min=0.1, help="Seconds without a sign of progress while it compiles or autotunes."
    ).tag(config=True)
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
        0,
        min=0,
        max=16,
        help="Warm workers, on a GPU each with a context; 0: 3 on a GPU with one lane, 4 with 16 "
        "cores, else 2.",
    ).tag(config=True)
    ncu = Unicode("", help="Path of Nsight Compute's `ncu`; empty: PATH and the CUDA folders.").tag(
        config=True
    )
    sandbox = Enum(
        ("auto", "on", "off"),
        "auto",
        help="Confine versions to their own files, without network: `auto`, `on` or `off`.",
    ).tag(config=True)
    jupyter_mcp = Bool(
        False, help="Jupyter's own MCP server lists the tools; its port asks for no token."
    ).tag(config=True)
    history = Bool(True, help="Write logs/<op>_log.jsonl as things happen.").tag(config=True)

    def __init__(self, **values: Any) -> None:
        own = {name: value for name, value in values.items() if name not in ("parent", "config")}
        for name, value in own.items():
            values[name] = check_setting(name, value, "Settings")
        super().__init__(**values)

    @classmethod
    def load(cls, folder: str | Path | None = None) -> Self:
        """Return the settings of the environment and the workspace's pyproject.toml.

        Args:
            folder: the workspace; by default that of the environment, else the current folder.

        Raises:
            UnknownName, BadValue: one of them is refused; the message names it.
        """
        return cls(**read_settings(folder))


def read_settings(
    folder: str | Path | None = None, environ: Mapping[str, str] = os.environ
) -> dict[str, Any]:
    """Return the settings of the environment, and of pyproject.toml where it has none.

    Args:
        folder: the workspace; by default that of the environment, else the current folder.
        environ: the variables; by default those of the process.
    """
    from_env = from_environment(environ)
    workspace = resolve_workspace(folder or from_env.get("workspace") or ".")
    return {**from_pyproject(workspace), **from_env}


def resolve_workspace(folder: str | Path) -> Path:
    """Return the absolute path of a workspace.

    Raises:
        BadValue: no folder can have this name.
    """
    try:
        path = Path(folder).expanduser().resolve()
        path.exists()  # raises for a name that is too long
        str(path).encode()  # a record and a log hold UTF-8 only
    except (OSError, RuntimeError, ValueError) as error:
        not_utf8 = isinstance(error, UnicodeEncodeError) and "its name is not UTF-8"
        reason = not_utf8 or getattr(error, "strerror", None) or error
        raise BadValue(f"workspace {str(folder)[:80]!r}: {reason}") from error
    return path


def from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return `{"strict": True}` for `TRITON_MAGICS_STRICT=1`."""
    texts = {k.removeprefix(PREFIX).lower(): v for k, v in environ.items() if k.startswith(PREFIX)}
    return {
        name: check_setting(name, text, f"{PREFIX}{name.upper()}", is_text=True)
        for name, text in texts.items()
        if name not in _OTHER_VARIABLES
    }


def from_pyproject(folder: Path) -> dict[str, Any]:
    """Return the settings of a folder's pyproject.toml; empty if there is none.

    Raises:
        BadValue: it is not TOML, or it names a workspace, which is its own folder.
    """
    path = folder / "pyproject.toml"
    if not path.is_file():
        return {}
    import tomllib  # imported late: most calls do not need it

    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadValue(f"{path} can't be read: {error}") from error
    tool = document.get("tool", {})
    table = tool.get("triton_magics", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        raise BadValue(
            f"{path}: triton_magics must be a table of settings, {_TABLE}, not {table!r}"
        )
    if "workspace" in table:
        raise BadValue(
            f"{_TABLE} in {path}: the workspace can't be set in its own file. Set "
            f"{PREFIX}WORKSPACE instead"
        )
    return {
        name: check_setting(name, value, f"{_TABLE} in {path}") for name, value in table.items()
    }


def check_setting(name: str, value: Any, source: str, *, is_text: bool = False) -> Any:
    """Return the value in the type of the setting.

    Args:
        name: name of the setting.
        value: the requested value.
        source: place of the value, for the message.
        is_text: True for a value of the environment, which is text.

    Raises:
        UnknownName: no such setting; the message suggests one.
        BadValue: the value is not allowed; the message names the allowed ones.
    """
    traits = Settings.class_traits(config=True)
    if name not in traits:
        hint = did_you_mean(name, traits)
        raise UnknownName(
            f"{source}: no setting {name!r}.{hint} Known: {', '.join(sorted(traits))}"
        )
    try:
        parsed = traits[name].from_string(value) if is_text else value
        settings = Settings()
        setattr(settings, name, parsed)
        _refuse_non_numbers(traits[name], parsed)
    except (TraitError, ValueError) as error:
        raise BadValue(
            f"{source}: {name} must be {_describe_values(traits[name])}, not {value!r}"
        ) from error
    return getattr(settings, name)


def _refuse_non_numbers(trait: TraitType[Any, Any], value: Any) -> None:
    """Raise ValueError for True, nan and inf, which Python accepts as numbers."""
    if isinstance(trait, Int | Float) and (isinstance(value, bool) or not math.isfinite(value)):
        raise ValueError(value)


def _describe_values(trait: TraitType[Any, Any]) -> str:
    """Return `a whole number from 70 to 130`."""
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


CEILINGS = "ceilings"  # folder in the cache: measured peak rates of this machine's GPUs
SHARED = "shared"  # folder in the cache: compiled code for all versions, which none can write
SIGNATURES = "signatures"  # folder in that: of the kernels whose launchers are to be shared
SIGNATURE = "cached-signature-"  # how the name of a cache entry with a signature begins
OUTBOX = "outbox"  # folder in a worker's own: compiled code that the worker can't publish itself


def cache_dir() -> Path:
    """Return the user's folder of compiled kernels, measured ceilings and locks, on local disk."""
    base = os.environ.get("TRITON_MAGICS_CACHE") or os.environ.get("XDG_CACHE_HOME")
    return Path(base) / "triton_magics" if base else Path.home() / ".cache" / "triton_magics"
