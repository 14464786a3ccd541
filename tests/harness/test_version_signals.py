"""A version's signal handlers raise during its calls and nowhere else."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from triton_magics.harness.process import version_signals


class Rang(BaseException):
    """Raised by a handler."""


def ring(*_: object) -> None:
    raise Rang


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    signal.signal(signal.SIGALRM, ring)
    yield
    version_signals.set_aside()
    version_signals._aside.clear()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)


def test_a_handler_does_not_run_in_a_shielded_block() -> None:
    with version_signals.shielded():
        signal.raise_signal(signal.SIGALRM)
    with pytest.raises(Rang):
        signal.raise_signal(signal.SIGALRM)


def test_a_handler_set_aside_twice_is_put_back() -> None:
    version_signals.set_aside()
    version_signals.set_aside()
    signal.raise_signal(signal.SIGALRM)
    version_signals.put_back()
    assert signal.getsignal(signal.SIGALRM) is ring


def test_a_timer_that_never_stops_is_set_aside() -> None:
    n_rung = 0
    signal.setitimer(signal.ITIMER_REAL, 5e-4, 5e-4)
    try:
        while n_rung < 20:
            try:
                version_signals.put_back()
                while True:
                    pass
            except Rang:
                n_rung += 1
            version_signals.set_aside()
            assert signal.getsignal(signal.SIGALRM) is signal.SIG_IGN
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
