"""Halves of the inputs reach what they should not only through a wrong index."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.kit import CPU, KERNELS, job_for
from triton_magics import operators
from triton_magics.harness.correctness.block_shapes import list_several_blocks, list_whole
from triton_magics.harness.correctness.half_reach import Separation, Unread
from triton_magics.harness.correctness.subject import Subject
from triton_magics.harness.load import load_version
from triton_magics.model import Case

pytestmark = pytest.mark.filterwarnings("ignore:tl.make_block_ptr")
PRODUCT = Case(shape=(257, 131, 101), dtype="float32", seed=1)
ROWS = Case(shape=(2, 3, 129), dtype="float32", seed=1)


def subject_of(path: Path) -> Subject:
    job = job_for(path)
    version = load_version(job.version)
    return Subject(operators.load(job.op.name), version, job, CPU, path.read_text())


def mutant(tmp_path: Path, kernel: str, old: str, new: str) -> Subject:
    source = (KERNELS / "right" / f"{kernel}.py").read_text()
    assert old in source
    path = tmp_path / "kernel.py"
    path.write_text(source.replace(old, new))
    return subject_of(path)


@pytest.mark.parametrize(
    ("kernel", "case", "shapes"),
    [
        ("matmul_block_pointers", PRODUCT, [(512, 256, 128), (128, 128, 256)]),  # 32 and 4 programs
        ("softmax_many_rows", ROWS, [(1, 256, 128)]),  # tiles of rows
        ("softmax_online", ROWS, [(2, 16, 2048)]),  # a program for each row
    ],
)
def test_several_blocks_are_few_programs(
    kernel: str, case: Case, shapes: list[tuple[int, ...]]
) -> None:
    several = list_several_blocks(subject_of(KERNELS / "right" / f"{kernel}.py"), case)
    assert [each.shape for each in several] == shapes


def test_no_head_is_longer_than_twice_the_longest_of_the_op() -> None:
    subject = subject_of(KERNELS / "right" / "attention_flash.py")
    case = Case(shape=(1, 1, 7, 64), dtype="float32", seed=1)
    assert [s[-1] for s in list_whole(subject.op, case.shape)] == [64, 64]
    assert [c.shape for c in list_several_blocks(subject, case)] == [(1, 1, 256, 128)]


@pytest.mark.parametrize(
    ("old", "new", "is_unread"),
    [
        ("acc += tl.dot(a, b,", "acc += tl.dot(a, tl.full(b.shape, 1.0, b.dtype),", True),
        ("range(0, K, BK)", "range(0, K - BK, BK)", False),  # at one block of K nothing is read
    ],
)
def test_an_input_is_unread_at_several_blocks_too(
    tmp_path: Path, old: str, new: str, is_unread: bool
) -> None:
    subject = mutant(tmp_path, "matmul_block_pointers", old, new)
    assert Unread(PRODUCT.evolve(shape=(32, 32, 32)), "b").is_right(subject)
    assert Unread(PRODUCT.evolve(shape=(64, 64, 128)), "b").is_right(subject) is is_unread


def test_a_right_version_reaches_what_it_should() -> None:
    subject = subject_of(KERNELS / "right" / "matmul_block_pointers.py")
    assert Separation(PRODUCT.evolve(shape=(128, 64, 32))).is_right(subject)


@pytest.mark.parametrize(
    ("old", "new", "is_separate"),
    [
        ("range(0, K, BK)", "range(0, K - BK, BK)", True),  # a part left out
        ("tl.advance(b_block, (BK, 0))", "tl.advance(b_block, (0, BK))", False),
        ("(bk, bn), (0, col)", "(bk, bn), (col, 0)", False),
    ],
)
def test_an_index_reaches_another_block_and_a_part_none(
    tmp_path: Path, old: str, new: str, is_separate: bool
) -> None:
    subject = mutant(tmp_path, "matmul_block_pointers", old, new)
    assert Separation(PRODUCT.evolve(shape=(256, 128, 128))).is_right(subject) is is_separate


def test_a_version_that_raises_confirms_nothing(tmp_path: Path) -> None:
    subject = mutant(tmp_path, "matmul_block_pointers", "BK=32", "BK=31")
    assert not Separation(PRODUCT.evolve(shape=(128, 64, 32))).is_right(subject)
