"""The text of any exception is short, and reading it raises nothing."""

from __future__ import annotations

import builtins
import json
import traceback

import pytest

from triton_magics import exception_text


class Unspeakable(ValueError):
    def __str__(self) -> str:
        raise SystemExit(0)

    __repr__ = __str__


class Hidden(Exception):
    @property
    def __traceback__(self) -> None:  # type: ignore[override]
        raise SystemExit(3)

    __cause__ = __context__ = __suppress_context__ = __notes__ = __class__ = __traceback__  # type: ignore[assignment]


class Text(str):
    """A text that lies about its length and can't be cut."""

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: object) -> str:
        raise SystemExit

    encode = strip = __getitem__  # type: ignore[assignment]


class WithOwnText(Exception):
    def __str__(self) -> str:
        return Text("z" * 1_000_000)


def catch(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:  # noqa: BLE001
        return caught


def circle() -> BaseException:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    return first


def deep_group() -> BaseException:
    error: Exception = ValueError("innermost")
    for _ in range(3000):
        error.add_note("n" * 100_000)
        error = ExceptionGroup("a level", [error])
    return error


ODD = {
    "a long message": lambda: RuntimeError("x" * 100_000_000),
    "a long name": type("x" * 30_000_000, (Exception,), {}),
    "no text": Unspeakable,
    "a text of its own class": WithOwnText,
    "hidden attributes": lambda: Hidden("hidden"),
    "a circle": circle,
    "a deep group": deep_group,
    "half a character": lambda: ValueError("\udce9"),
    "odd syntax": lambda: SyntaxError("m", ("f", "x" * 100_000, object(), "c" * 100_000)),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_exception_has_a_short_text(name: str) -> None:
    caught = catch(ODD[name]())
    for text in (
        exception_text.message(caught),
        exception_text.one_line(caught),
        exception_text.class_name(caught),
        exception_text.format_error(caught),
    ):
        assert type(text) is str
        assert text
        assert len(text) < 20_000
        json.dumps(text).encode()
    assert exception_text.chain(caught)[0] is caught


def test_a_shortened_text_has_its_beginning_and_end() -> None:
    text = "first " + "x" * 10_000 + " last"
    short = exception_text.shorten(text, 100)
    assert short.startswith("first")
    assert short.endswith("last")
    assert f"{len(text) - 100} characters left out" in short
    assert exception_text.shorten("as it is", 100) == "as it is"


def test_each_cause_is_read_once_and_not_without_end() -> None:
    assert [str(link) for link in exception_text.chain(circle())] == ["first", "second"]
    hidden = catch(Hidden("hidden"))
    assert exception_text.stack(hidden) is not None


def test_a_common_traceback_is_that_of_python() -> None:
    def fail() -> None:
        try:
            {}["key"]
        except KeyError:
            raise ValueError("second") from None

    def fail_again() -> None:
        try:
            fail()
        except ValueError as error:
            raise RuntimeError("third") from error

    for function in (fail, fail_again):
        with pytest.raises(Exception) as caught:  # noqa: PT011
            function()
        expected = "".join(traceback.format_exception(caught.value))
        assert exception_text.format_error(caught.value) == expected


def test_notes_and_the_parts_of_a_group_are_shown() -> None:
    error = ExceptionGroup("all", [ValueError("one"), TypeError("two")])
    error.add_note("a note")
    lines = exception_text.format_error(error).splitlines()
    assert lines[1:] == ["a note", "  + ValueError: one", "  + TypeError: two"]
    assert lines[0].startswith("ExceptionGroup: all")


def test_replaced_builtins_change_no_class(monkeypatch: pytest.MonkeyPatch) -> None:
    error = ValueError("mine")
    for name in ("isinstance", "issubclass"):
        monkeypatch.setattr(builtins, name, lambda *_: True)
    answers = exception_text.is_a(error, OSError), exception_text.is_a(error, OSError, Exception)
    monkeypatch.undo()
    assert answers == (False, True)
