"""The workspace: kernel files, versions, history, results and the event log, on disk."""

from triton_magics.workspace.recorder import Transition
from triton_magics.workspace.source import inspect_source
from triton_magics.workspace.workspace import Workspace

__all__ = ["Transition", "Workspace", "inspect_source"]
