"""Executors by name: `local`, `dask`, and those that packages add (entry points)."""

from __future__ import annotations

from importlib.metadata import entry_points

from triton_magics.config import Settings
from triton_magics.errors import UnknownName, did_you_mean
from triton_magics.execution.base import Executor
from triton_magics.execution.local.executor import LocalExecutor

GROUP = "triton_magics.executors"
LOCAL = "local"
DASK = "dask"


def create(settings: Settings) -> Executor:
    """Return a new executor of the kind that the settings name.

    `ssh://box` is the local executor of another machine, `https://box:8000` that of a server. A
    package adds one by an entry point of the group `triton_magics.executors`: a callable that takes
    the settings.

    Raises:
        UnknownName: no such executor is installed.
        BadValue: no such host can be named.
    """
    name = settings.engine
    if name == LOCAL:
        return LocalExecutor(settings)
    if name == DASK:
        from triton_magics.execution.dask_executor import DaskExecutor

        return DaskExecutor(settings)
    if "://" in name:
        from triton_magics.execution.remote_executor import RemoteExecutor  # on use: many models

        return RemoteExecutor(name, settings)
    installed = {point.name: point for point in entry_points(group=GROUP)}
    if name not in installed:
        names = (LOCAL, DASK, *installed)
        hint = did_you_mean(name, names)
        raise UnknownName(f"there is no engine {name!r}.{hint} Installed: {', '.join(names)}")
    executor: Executor = installed[name].load()(settings)
    return executor


__all__ = ["create"]
