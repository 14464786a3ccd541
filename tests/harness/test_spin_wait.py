"""A process that waits without sleeping leaves its core to whoever wants it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from triton_magics.execution.cpu_cores import SHARE
from triton_magics.harness.process.spin_wait import PAUSE_S, SPIN_S, SpinWait, usable_cores

ALONE_S, SHARED_S = 1e-6, 3e-3  # a yield, where nobody wants the core and where somebody does


class Core:
    """A clock that only yields move, each as long as `yield_s`."""

    def __init__(self, yield_s: float, cores: int = 16) -> None:
        self.now_s, self.yield_s, self.n_yields = 0.0, yield_s, 0
        self.spinning = SpinWait(
            clock=lambda: self.now_s, give_way=self.give_way, cores=lambda: cores
        )

    def give_way(self) -> None:
        self.n_yields += 1
        self.now_s += self.yield_s


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def test_a_wait_on_an_idle_core_does_not_sleep(pipe: tuple[int, int]) -> None:
    core = Core(ALONE_S)
    core.spinning.wait(pipe[0])
    assert core.n_yields == pytest.approx(SPIN_S / ALONE_S, rel=0.01)


def test_a_message_ends_the_wait(pipe: tuple[int, int]) -> None:
    os.write(pipe[1], b"x")
    core = Core(ALONE_S)
    core.spinning.wait(pipe[0])
    assert core.n_yields == 0


def test_a_core_that_others_want_is_left_to_them(pipe: tuple[int, int]) -> None:
    core = Core(SHARED_S)
    for _ in range(10):
        core.spinning.wait(pipe[0])
    assert core.n_yields == 1


def test_spinning_is_tried_again_after_the_pause(pipe: tuple[int, int]) -> None:
    core = Core(SHARED_S)
    core.spinning.wait(pipe[0])
    core.now_s += PAUSE_S
    core.yield_s = ALONE_S
    core.spinning.wait(pipe[0])
    assert core.n_yields > 1000


def test_few_cores_are_never_spun_on(pipe: tuple[int, int]) -> None:
    core = Core(ALONE_S, cores=4)
    core.spinning.wait(pipe[0])
    assert core.n_yields == 0


def test_a_process_uses_the_cores_of_its_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {*range(12)})
    monkeypatch.delenv(SHARE, raising=False)
    assert usable_cores() == 12
    monkeypatch.setenv(SHARE, "4")
    assert usable_cores() == 4
