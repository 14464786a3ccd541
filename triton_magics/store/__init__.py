"""The workspace: kernel files, versions, history, results and the event log, on disk."""

from triton_magics.store.event_writer import Transition
from triton_magics.store.workspace import Workspace

__all__ = ["Transition", "Workspace"]
