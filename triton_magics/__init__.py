"""Develop Triton GPU kernels in a notebook: write, validate, benchmark, choose, keep the record.

In a notebook `%load_ext triton_magics`, then `%triton_op softmax`; in plain Python the same verbs:

    import triton_magics as tm
    tm.show(tm.validate("softmax", "v2"))

They all work on one `Lab`, in the current folder; `tm.Lab(path)` makes another. Heavy modules
are imported when they are needed, because a worker imports this package too.
"""

from __future__ import annotations

from _thread import RLock  # `threading` would load a dozen modules

TYPE_CHECKING = False  # importing typing would take longer than the rest of this module
if TYPE_CHECKING:
    from typing import Any

    from triton_magics.config import Settings
    from triton_magics.lab import Lab

__version__ = "0.2.0.dev0"
_FUNCTIONS = ("Lab", "close", "configure", "default_lab", "open_lab", "show", "use")


class _Default:
    """The Lab of the magics and of this module's functions, and its settings."""

    lab: Lab | None = None
    settings: Settings | None = None
    lock = RLock()  # `%load_ext` opens the Lab in a thread


def default_lab() -> Lab:
    """Return the Lab of the magics and of this module's functions; make it on the first call."""
    with _Default.lock:
        if _Default.lab is None:
            from triton_magics.lab import Lab

            _Default.lab = Lab(settings=_Default.settings)
        return _Default.lab


def open_lab() -> Lab | None:
    """Return the default Lab if there is one."""
    return _Default.lab


def use(lab: Lab) -> None:
    """Make a Lab the default; close the previous default."""
    _close_previous(lab, _Default.settings)


def configure(settings: Settings | None) -> None:
    """Set the settings of the default Lab; close the Lab that has the previous ones."""
    _close_previous(None, settings)


def close() -> None:
    """Close the default Lab and its processes; the next verb makes another."""
    _close_previous(None, _Default.settings)


def _close_previous(lab: Lab | None, settings: Settings | None) -> None:
    """Set the default Lab and its settings; close the Lab that was the default, if another."""
    with _Default.lock:  # a thread may be making the default Lab: its Lab is closed too
        previous, _Default.lab, _Default.settings = _Default.lab, lab, settings
    if previous is not None and previous is not lab:
        previous.close()


def show(value: object) -> None:
    """Print a value as a terminal shows it: verdict first, then the main figure, then details.

    Raises:
        TypeError: no verb returns such a value.
    """
    import sys

    from triton_magics import rendering
    from triton_magics.verbs._phrase import as_python

    sys.stdout.write(rendering.bundle(value, as_python)["text/plain"].rstrip() + "\n")


def load_ipython_extension(shell: Any) -> None:
    """Load the magics: `%load_ext triton_magics`."""
    from triton_magics.notebook import load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Unload the magics: `%unload_ext triton_magics`."""
    from triton_magics.notebook import unload

    unload(shell)


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return sorted({*_FUNCTIONS, *_verbs()})
    if name != "Lab" and (name.startswith("_") or name not in _verbs()):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from triton_magics import lab_thread

    lab_thread.wait_for_imports()
    from triton_magics.lab import Lab

    return Lab if name == "Lab" else _on_default_lab(getattr(Lab, name))


def __dir__() -> list[str]:
    return sorted({*globals(), *_FUNCTIONS, *_verbs()})


def _verbs() -> tuple[str, ...]:
    """Return the names of the verbs, old ones too; imports none."""
    from triton_magics.verbs import OLD_NAMES, method_name, names

    return (*map(method_name, names()), *OLD_NAMES)


def _on_default_lab(method: Any) -> Any:
    """Return a method of Lab as a function of the default Lab."""
    import functools
    import inspect

    @functools.wraps(method)
    def function(*args: Any, **options: Any) -> Any:
        return method(default_lab(), *args, **options)

    function.__qualname__ = method.__name__
    signature = inspect.signature(method)
    parameters = list(signature.parameters.values())[1:]
    function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return function
