"""An op beside the code: its state, versions, plots, references, log and engine, as they change."""

from triton_magics.notebook.panel.panel import Panel

__all__ = ["Panel"]
