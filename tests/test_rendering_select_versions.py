"""Of very many versions a figure shows the first, the newest and the fastest."""

import report_values as rv

from triton_magics.rendering.select_versions import select_versions


def test_first_newest_and_fastest_are_selected_in_order() -> None:
    value = rv.many_versions(50)  # the even ones get faster, the odd ones slower
    result, words = select_versions(value, 5)
    assert result.versions == tuple(f"v{i}_tried" for i in (1, 44, 46, 48, 50))
    assert result.sha256s == tuple(map(rv.sha256, result.versions))
    assert result.providers == ("torch", *result.versions)
    assert {t.provider for t in result.timings} == {"torch", *result.versions}
    assert result.speedup("v48_tried") == value.speedup("v48_tried")
    which = "the first, the newest and the fastest of the others"
    assert words == f"5 of 50 versions: {which}"


def test_all_versions_are_shown_if_they_fit() -> None:
    value = rv.many_versions(5)
    assert select_versions(value, 5) == (value, "")


def test_versions_without_a_final_rank_by_largest_size() -> None:
    value = rv.many_versions(9, sizes=("small", "medium"))
    timings = tuple(t for t in value.timings if t.provider != "v8_tried" and t.size != "large")
    result, _ = select_versions(value.evolve(timings=timings), 4)
    assert result.versions == ("v1_tried", "v4_tried", "v6_tried", "v9_tried")
