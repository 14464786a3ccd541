"""The session of the verbs: a workspace, an executor, settings, events and workflow rules."""

from triton_magics.session.session import Session

__all__ = ["Session"]
