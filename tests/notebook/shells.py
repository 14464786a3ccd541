"""An IPython shell that keeps what its cells show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

KERNEL = "import triton\n\n\ndef triton_softmax(x):\n    return x  # {}\n"


@dataclass
class Cell:
    """Result of running a cell; `outputs` are its MIME bundles in order, with the result."""

    value: Any
    error: BaseException | None
    stdout: str
    stderr: str
    outputs: list[dict[str, str]]

    @property
    def lines(self) -> list[str]:
        """Return the traceback that IPython shows."""
        return self.error._render_traceback_()  # type: ignore[union-attr]

    def shown(self, mime: str = "text/plain") -> str:
        """Return the text of all outputs."""
        return "\n".join(bundle[mime] for bundle in self.outputs if mime in bundle)


class Shell:
    """Runs cells."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell
        self._publisher = CapturingDisplayPublisher()
        shell.display_pub = self._publisher
        shell.displayhook.write_format_data = self._result

    def _result(self, data: dict[str, str], metadata: object = None) -> None:
        self._publisher.outputs.append({"data": data})

    def __call__(self, code: str) -> Cell:
        self._publisher.outputs.clear()
        with capture_output(display=False) as captured:
            result = self.shell.run_cell(code)
        error = result.error_in_exec or result.error_before_exec
        outputs = [output["data"] for output in self._publisher.outputs]
        return Cell(result.result, error, captured.stdout, captured.stderr, outputs)

    def write(self, version: str, text: str = "") -> Cell:
        """Write a version of softmax whose code contains the text."""
        return self(f"%%triton_kernel softmax {version}\n{KERNEL.format(version + text)}")
