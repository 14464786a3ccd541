"""Badges as values, and those of older records, which were sentences."""

import pytest

from triton_magics.model import Badge, BadgeCode
from triton_magics.rendering.views.badges import badge_labels, badge_text

OLD = {
    "quick": Badge.of(BadgeCode.QUICK_PLAN),
    "only some shapes": Badge.of(BadgeCode.NAMED_SHAPES),
    "loosened tolerance": Badge.of(BadgeCode.LOOSENED_TOLERANCE),
    "interpreter": Badge.of(BadgeCode.INTERPRETER),
    "your own tolerance: rtol=0.01, atol=2e-05": Badge.of(
        BadgeCode.OWN_TOLERANCE, rtol=0.01, atol=2e-5
    ),
    "your own tolerance: atol=0.1": Badge.of(BadgeCode.OWN_TOLERANCE, atol=0.1),
    "fewer than 10 runs": Badge.of(BadgeCode.FEW_RUNS, runs=10),
    "--timer graph needs a GPU": Badge.of(BadgeCode.NEEDS_GPU, parameter="timer", value="graph"),
    "--hot needs a GPU": Badge.of(BadgeCode.NEEDS_GPU, parameter="hot", value=True),
    "a version's import changes torch's settings; they were put back": Badge.of(
        BadgeCode.CHANGED_SETTINGS
    ),
    "v1_baseline changes torch's settings; they were put back": Badge.of(
        BadgeCode.CHANGED_SETTINGS, provider="v1_baseline"
    ),
    "does v2 keep its answer? At small a run's first call takes 2.3 times as long as the others": (
        Badge.of(BadgeCode.POSSIBLE_CACHING, provider="v2", size="small", times=2.3)
    ),
    "clock held down: power cap, heat (driver)": Badge.of(
        BadgeCode.CLOCK_LIMITED, causes=("power cap", "heat (driver)")
    ),
    "shared GPU: process 12, 34 uses it too": Badge.of(BadgeCode.SHARED_GPU, pids=(12, 34)),
    "raw times: CUPTI could not tell what the timer adds": Badge.of(BadgeCode.RAW_TIMES),
    "v2: quick": Badge(code=BadgeCode.QUICK_PLAN, version="v2"),
    "v3: v2: quick": Badge(code=BadgeCode.TEXT, params={"text": "v2: quick"}, version="v3"),
    "your own tolerance: rtol=much": Badge.of(BadgeCode.TEXT, text="your own tolerance: rtol=much"),
    "": Badge.of(BadgeCode.TEXT, text=""),
}


# Badges that no older record has.
NEW = {
    BadgeCode.SLOWED_TORCH: {"size": "small", "times": 2.1},
    BadgeCode.SOME_DTYPES: {"dtypes": ("float32",)},
    BadgeCode.SOME_LAYOUTS: {"layouts": ("contiguous",)},
    BadgeCode.UNCALIBRATED: {"dtypes": ("float32",)},
    BadgeCode.PROBLEM_RULE: {"accepted": 3, "cases": 4},
    BadgeCode.TORCH_WORK: {"operations": ("sum",), "share": 0.004},
    BadgeCode.OWN_INPUTS: {"file": "x.npz"},
    BadgeCode.BACKWARD_ONLY: {},
    BadgeCode.STATED_LIMITS: {"extents": ("over 65,535 heads", "head_dim 256")},
    BadgeCode.LINES_NOT_RUN: {"lines": (22, 23)},
    BadgeCode.DEFAULT_DTYPE: {},
    BadgeCode.SCATTERED: {},
    BadgeCode.NAMED_CASES: {},
}


@pytest.mark.parametrize("text", OLD)
def test_badge_of_an_older_record_becomes_a_value(text: str) -> None:
    assert Badge.model_validate(text) == OLD[text]


@pytest.mark.parametrize("badge", OLD.values(), ids=str)
def test_badge_survives_json(badge: Badge) -> None:
    assert Badge.model_validate_json(badge.model_dump_json()) == badge


@pytest.mark.parametrize(
    ("badge", "words"),
    [
        ({"code": "fine"}, "code"),
        ({"code": "few_runs"}, "missing .'runs'"),
        ({"code": "few_runs", "params": {"runs": "many"}}, "wrong .'runs'"),
        ({"code": "quick_plan", "params": {"runs": 3}}, "wrong .'runs'"),
    ],
)
def test_badge_that_can_not_be_written_out_is_refused(badge: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Badge.model_validate(badge)


def test_every_badge_has_a_text() -> None:
    labels = [*badge_labels([*OLD.values()])]
    assert all(labels[:-1])
    assert {badge.code for badge in OLD.values()} == set(BadgeCode) - NEW.keys()
    assert [*badge_labels([Badge.of(code, **params) for code, params in NEW.items()])] == [
        "torch took 2.1x as long beside the versions at small; its own time is used",
        "float32 only",
        "inputs in these layouts only: contiguous",
        "uncalibrated: float32",
        "the problem's own rule accepts 3 of 4 cases",
        "torch computes 0.4 % of the work (sum)",
        "only the inputs of x.npz",
        "the backward pass alone",
        "limits: over 65,535 heads; head_dim 256",
        "no case ran cell line 22 and 1 more",
        "wrong under another `torch.set_default_dtype`: give each new tensor its dtype",
        "its output is not contiguous, as torch's is: `view` may fail",
        "only some cases",
    ]


def test_versions_with_one_badge_share_its_text() -> None:
    few = [Badge.of(BadgeCode.FEW_RUNS, runs=5).evolve(version=v) for v in ("v1", "v3", "v1")]
    own = Badge.of(BadgeCode.FEW_RUNS, runs=5)
    quick = Badge.of(BadgeCode.QUICK_PLAN)
    text = "fewer than 5 runs"
    assert badge_labels([*few, quick, own]) == (f"v1, v3: {text}", "quick", text)


def test_a_caption_counts_the_limits_of_each_version() -> None:
    extents = ("over 65,535 heads", "head_dim 256")
    limits = [
        Badge.of(BadgeCode.STATED_LIMITS, extents=own).evolve(version=version)
        for version, own in (("v1", extents), ("v2", extents[:1]), ("v3", extents[::-1]))
    ]
    others = [Badge.of(BadgeCode.QUICK_PLAN), Badge.of(BadgeCode.INTERPRETER)]
    text = badge_text([*limits, *others])
    assert text == " [v1, v3: 2 stated limits, v2: 1 stated limit, quick]"
    assert "v2: limits: over 65,535 heads" in badge_labels(limits)
