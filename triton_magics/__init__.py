"""Develop Triton GPU kernels in a notebook: write, validate, benchmark, choose, keep the record.

In a notebook `%load_ext triton_magics`, then `%triton_op softmax`; in plain Python the same verbs:

    import triton_magics as tm
    tm.show(tm.validate("softmax", "v2"))

They all work on one `Lab`, in the current folder; `tm.Lab(path)` makes another. Nothing heavy is
imported before it is asked for, because a worker imports this package too.
"""

from __future__ import annotations

TYPE_CHECKING = False  # importing typing would take longer than the rest of this module
if TYPE_CHECKING:
    from typing import Any

    from triton_magics.config import Settings
    from triton_magics.lab import Lab

__version__ = "0.1.0"
__all__ = [
    "Lab", "attempts", "bench", "best", "close", "configure", "default_lab", "export", "inspect",
    "op", "open_lab", "plot", "ref", "reference", "restore", "run", "show", "source", "status",
    "summary", "sweep", "take", "template", "use", "validate", "write",
]  # fmt: skip


class _Default:
    """The one Lab that belongs to no caller, and the settings to make it with."""

    lab: Lab | None = None
    settings: Settings | None = None


def default_lab() -> Lab:
    """The Lab of the magics and of this module's functions; made when it is first asked for."""
    if _Default.lab is None:
        from triton_magics.lab import Lab

        _Default.lab = Lab(settings=_Default.settings)
    return _Default.lab


def open_lab() -> Lab | None:
    """The default Lab, where it was already made."""
    return _Default.lab


def use(lab: Lab) -> None:
    """Makes a Lab the default one; an earlier default is closed."""
    if lab is not _Default.lab:
        close()
        _Default.lab = lab


def configure(settings: Settings | None) -> None:
    """Gives the default Lab other settings; what was made with the earlier ones is closed."""
    close()
    _Default.settings = settings


def close() -> None:
    """Ends the default Lab and its processes; the next verb makes another."""
    lab, _Default.lab = _Default.lab, None
    if lab is not None:
        lab.close()


def show(value: object) -> None:
    """Prints a value as a terminal shows it: verdict first, then what matters, then the rest.

    Raises:
        TypeError: not the value of a verb.
    """
    import sys

    from triton_magics import report

    sys.stdout.write(report.bundle(value)["text/plain"].rstrip() + "\n")


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext triton_magics`."""
    from triton_magics.notebook import load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """`%unload_ext triton_magics`."""
    from triton_magics.notebook import unload

    unload(shell)


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from triton_magics.lab import Lab

    return Lab if name == "Lab" else _on_default_lab(getattr(Lab, name))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _on_default_lab(method: Any) -> Any:
    """A method of Lab as a function over the default one."""
    import functools
    import inspect

    @functools.wraps(method)
    def function(*args: Any, **options: Any) -> Any:
        return method(default_lab(), *args, **options)

    signature = inspect.signature(method)
    parameters = list(signature.parameters.values())[1:]
    function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return function
