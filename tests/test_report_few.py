"""Of very many versions a figure shows the first, the newest and the fastest."""

import report_values as rv

from triton_magics.report.few import fewer


def test_the_first_the_newest_and_the_fastest_are_kept_in_their_order() -> None:
    value = rv.many_versions(50)  # the even ones get faster, the odd ones slower
    made, words = fewer(value, 5)
    assert made.versions == tuple(f"v{i}_tried" for i in (1, 44, 46, 48, 50))
    assert made.sha256s == tuple(map(rv.sha256, made.versions))
    assert made.providers == ("torch", *made.versions)
    assert {t.provider for t in made.timings} == {"torch", *made.versions}
    assert made.speedup("v48_tried") == value.speedup("v48_tried")
    which = "the first, the newest and the fastest of the others"
    assert words == f"5 of 50 versions: {which}"


def test_as_many_as_there_is_room_for_are_all_shown() -> None:
    value = rv.many_versions(5)
    assert fewer(value, 5) == (value, "")


def test_without_a_final_the_largest_size_ranks_and_who_has_no_time_comes_last() -> None:
    value = rv.many_versions(9, sizes=("small", "medium"))
    timings = tuple(t for t in value.timings if t.provider != "v8_tried" and t.size != "large")
    made, _ = fewer(value.model_copy(update={"timings": timings}), 4)
    assert made.versions == ("v1_tried", "v4_tried", "v6_tried", "v9_tried")
