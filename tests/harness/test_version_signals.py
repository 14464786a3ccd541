"""A version's signal handlers raise during its calls and nowhere else."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator

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


@pytest.mark.parametrize("n_rings", [1, 20])
def test_a_timer_that_rings_meanwhile_is_set_aside(
    monkeypatch: pytest.MonkeyPatch, n_rings: int
) -> None:
    rings = iter(range(n_rings))
    mask = version_signals._mask

    def ring_first(how: int, signals: Iterable[int]) -> set[int]:
        if next(rings, None) is not None:
            signal.raise_signal(signal.SIGALRM)
        return mask(how, signals)

    monkeypatch.setattr(version_signals, "_mask", ring_first)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    version_signals.set_aside()
    assert next(rings, None) is None
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_IGN
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


def test_no_signal_comes_while_handlers_are_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    get = version_signals._get

    def ring_first(number: int) -> object:
        signal.raise_signal(signal.SIGALRM)
        return get(number)

    monkeypatch.setattr(version_signals, "_get", ring_first)
    version_signals.set_aside()
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_IGN
