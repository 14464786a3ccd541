"""The part of a development log that says what limits a version."""

from __future__ import annotations

from triton_magics.model import Profile
from triton_magics.rendering.blocks import Details, Document
from triton_magics.rendering.views.profile import profile_headline, roofline_line
from triton_magics.rendering.views.profile_tables import figures_table, lines_table


def profile_part(value: Profile | None) -> Document:
    """Return the limit, the roofline and the slow lines, with all figures folded."""
    if value is None or value.main_kernel is None:
        return ()
    return (
        profile_headline(value),
        *roofline_line(value),
        *lines_table(value.main_kernel),
        Details("figures of the profile", (figures_table(value),)),
    )


__all__ = ["profile_part"]
