"""The panel: state, versions, plots, references, log and engine of an op, updated live."""

from triton_magics.notebook.panel.panel import Panel

__all__ = ["Panel"]
