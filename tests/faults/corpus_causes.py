"""Compare the explanation of a failed validation with the kernel's true cause.

An explanation is what a user reads first: the likely cause of the first failed case, or else its
status, for `stale` or `not_triton` names a cause as well. It is *correct*, *vague* (an observation
that fits several causes), *misleading* (another cause) or *absent*.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests.faults.class_kernels import is_class_kernel, read_kernel
from triton_magics.model import CaseResult, CaseStatus, CauseCode

GRADES = ("correct", "vague", "misleading", "absent")

CAUSE_OF_OPERATOR = {
    "drop_mask": "missing_mask", "drop_other": "wrong_fill", "alter_other": "wrong_fill",
    "loosen_comparison": "missing_mask", "floor_division": "truncated_extent",
    "shorten_loop": "truncated_extent", "shift_block": "truncated_extent",
    "swap_stride": "wrong_stride", "drop_factor": "wrong_formula", "drop_divisor": "wrong_formula",
    "drop_cast": "lower_precision", "change_constant": "wrong_formula",
    "drop_maximum": "missing_maximum", "half_accumulator": "lower_precision",
    "use_tf32": "lower_precision", "drop_atomic": "race", "leave_unset": "unset_memory",
    "drop_contiguous": "wrong_stride",
}  # fmt: skip
"""By operator of `mutate.py`."""

_KERNELS_OF_CAUSE = {
    "wrong_formula": (
        "add_forgets_negative_alpha", "attention_forgets_the_scale", "ignores_alpha",
        "attention_scale_of_the_padding", "cross_entropy_forgets_the_maximum",
        "cross_entropy_sums", "dropout_forgets_the_scale", "gelu_clips_the_tail",
        "gelu_sigmoid_form", "gelu_tanh_form", "layer_norm_eps_outside", "layer_norm_fixed_eps",
        "layer_norm_forgets_the_bias", "layer_norm_shares_the_mean", "layer_norm_unbiased",
        "mean_of_the_block", "mha_always_causal", "mha_never_causal", "mha_sees_one_ahead",
        "mul_reads_one_input", "relu_caps_at_six", "relu_is_absolute", "relu_leaks",
        "softmax_base_confused", "softmax_first_row_max", "softmax_max_of_the_tile",
        "rms_norm_divides_by_the_block", "rms_norm_eps_after_the_root", "rope_turns_backwards",
        "swiglu_gates_the_other", "returns_the_mean", "works_on_the_other_axis",
        "matmul_forgets_to_advance",
    ),
    "missing_rescale": ("softmax_forgets_to_rescale", "linear_loss_without_rescaling"),
    "missing_maximum": ("forgets_the_maximum",),
    "nan_lost": ("relu_swallows_nan",),
    "truncated_extent": (
        "add_leaves_the_last_block", "mha_stops_too_early", "mul_skips_a_block", "skips_the_tail",
        "drops_the_last_k_block", "starts_one_too_late", "quantized_drops_the_last_block",
        "fp8_drops_the_last_block",
    ),
    "missing_mask": (
        "attention_sees_the_padding", "layer_norm_pads_the_spread", "sum_too_many_lanes",
        "forgets_the_mask", "reads_outside_and_drops_it", "reads_past_the_end",
        "stores_beyond_its_block", "linear_loss_counts_the_padding",
    ),
    "wrong_fill": ("forgets_other",),
    "wrong_stride": (
        "mul_assumes_equal_strides", "relu_swaps_its_tiles", "confuses_the_stride",
        "rope_position_of_the_head", "quantized_scale_of_the_row", "fp8_scale_of_the_row",
        "gqa_head_by_remainder", "gqa_keys_of_the_first_batch", "gqa_pairs_of_heads",
    ),
    "lower_precision": (
        "gelu_buffer_in_half", "gelu_half_precision_inside", "matmul_rounds_its_inputs",
        "mul_rounds_to_half", "swiglu_share_in_half",
        "softmax_multiplies_by_reciprocal_in_half", "accumulates_in_half", "rounds_to_tf32",
    ),
    "cancellation": ("takes_the_variance_in_one_pass",),
    "race": ("matmul_adds_in_place", "matmul_group_overlaps", "clears_what_another_reads"),
    "wrong_rate": ("dropout_keeps_what_it_should_drop",),
    "ignored_argument": ("dropout_ignores_the_seed",),
    "shared_draws": ("dropout_repeats_its_mask",),
    "stale_cache": ("caches_by_identity",),
    "torch_computed": ("calls_torch", "launches_a_decoy"),
    "side_effect": ("changes_its_input", "leaves_a_thread"),
    "unset_memory": ("leaves_memory_unset", "saves_the_memset"),
    "reused_memory": (
        "returns_its_input", "returns_its_input_where_it_can", "returns_the_same_buffer",
    ),
    "wrong_form": (
        "returns_a_list", "returns_a_subclass", "returns_a_wider_dtype", "returns_another_shape",
        "returns_it_on_the_cpu", "returns_nothing", "squeezes_its_output",
    ),
    "exception": ("divides_by_zero", "fails_after_launching"),
}  # fmt: skip
_CAUSE_OF_MUTANT = {
    "drop_factor_0_add_strided": "wrong_stride", "drop_factor_2_mean_row": "wrong_stride",
    "drop_factor_3_matmul_grouped": "wrong_stride", "drop_factor_4_relu_tiles": "wrong_stride",
    "loosen_comparison_4_mha_flash": "wrong_formula",
}  # fmt: skip
"""Where the place decides: a factor that is a stride, a comparison that is the causal mask."""
_CAUSE_OF_KERNEL = {name: cause for cause, names in _KERNELS_OF_CAUSE.items() for name in names}

_OUTSIDE = ("missing_mask", "truncated_extent", "int_overflow", "wrong_stride")
CORRECT: dict[str, tuple[str, ...]] = {
    CauseCode.RACE: ("race",),
    CauseCode.STALE_STATE: ("stale_state", "stale_cache", "call_count"),
    CauseCode.WRONG_STRIDE: ("wrong_stride",),
    CauseCode.MISSING_MASK: ("missing_mask", "truncated_extent", "wrong_fill"),
    CauseCode.WRONG_FILL: ("wrong_fill", "missing_mask"),
    CauseCode.MISSING_MAXIMUM: ("missing_maximum", "overflow", "missing_rescale"),
    CauseCode.CANCELLATION: ("cancellation",),
    CauseCode.LOWER_PRECISION: ("lower_precision", "overflow"),
    CauseCode.LAST_BLOCK: ("truncated_extent", "missing_mask"),
    CauseCode.WRONG_FORMULA: ("wrong_formula", "ignored_argument"),
    CauseCode.PARTIAL_EXTENT: ("truncated_extent",),
    CauseCode.INT_OVERFLOW: ("int_overflow",),
    CauseCode.NAN_LOST: ("nan_lost",),
    CauseCode.OVERFLOW: ("overflow", "missing_maximum"),
    CauseCode.CONSTANT_FACTOR: ("wrong_formula", "wrong_rate"),
    CauseCode.UNWRITTEN: ("unset_memory", "truncated_extent", "missing_mask"),
    CauseCode.UNSET_MEMORY: ("unset_memory", "truncated_extent", "missing_mask"),
    CauseCode.NOT_DETERMINISTIC: ("race", "stale_state", "call_count"),
    CaseStatus.STALE: ("stale_cache", "stale_state", "call_count"),
    CaseStatus.ALIASED: ("reused_memory",),
    CaseStatus.TAMPERED: ("tampering",),
    CaseStatus.NOT_TRITON: ("torch_computed", "stale_cache", "tampering"),
    CaseStatus.SIDE_EFFECT: ("side_effect",),
    CaseStatus.MUTATED_INPUT: ("side_effect",),
    CaseStatus.UNFINISHED_WORK: ("side_effect",),
    CaseStatus.RACE: ("race", *_OUTSIDE, "stale_state"),
    CaseStatus.OUT_OF_BOUNDS: _OUTSIDE,
    CaseStatus.WRONG_SHAPE: ("wrong_form",),
    CaseStatus.WRONG_DTYPE: ("wrong_form",),
    CaseStatus.WRONG_TYPE: ("wrong_form",),
    CaseStatus.WRONG_DEVICE: ("wrong_form",),
    CaseStatus.RUNTIME_ERROR: ("exception",),
    CaseStatus.COMPILE_ERROR: ("exception",),
    "shared_draws": ("shared_draws", "shifted_stream"),
    "wrong_rate": ("wrong_rate", "wrong_formula"),
    "ignored_argument": ("ignored_argument", "shifted_stream"),
}
"""The true causes for which an explanation is correct."""

_VAGUE = {
    *(c.value for c in (CauseCode.ZEROS, CauseCode.UNSET_MEMORY, CauseCode.UNWRITTEN)),
    CauseCode.NOT_DETERMINISTIC.value,
    *(c.value for c in (CauseCode.CONSTANT_FACTOR, CauseCode.REACH, CauseCode.TEXT)),
    CauseCode.OVERFLOW.value,
    *(s.value for s in (CaseStatus.RUNTIME_ERROR, CaseStatus.COMPILE_ERROR, CaseStatus.RACE)),
    *(s.value for s in (CaseStatus.OUT_OF_BOUNDS, CaseStatus.CRASHED)),
}
"""Explanations that say only what was seen, so that another cause does not contradict them."""

_CODE_OF_REASON = (
    (r"is contiguous, wrong where .*: a wrong stride", "wrong_stride"),
    (r"elements were kept", "wrong_rate"),
    (r"share their random numbers", "shared_draws"),
    (r"the same mask|dependent masks|[Tt]wo seeds", "ignored_argument"),
)
"""The message of an op's own check, by its words."""


def true_cause(path: Path) -> str | None:
    """Return the cause of a wrong kernel's fault; None if it is right, or not of one cause."""
    if is_class_kernel(path):
        return read_kernel(path).cause
    if path.stem in _CAUSE_OF_MUTANT:
        return _CAUSE_OF_MUTANT[path.stem]
    operator = next((o for o in CAUSE_OF_OPERATOR if re.match(rf"{o}_\d", path.stem)), None)
    return CAUSE_OF_OPERATOR[operator] if operator else _CAUSE_OF_KERNEL.get(path.stem)


def explanation_of(result: CaseResult) -> str | None:
    """Return the code of a failed case's explanation; None where it names no cause."""
    if result.mismatch and result.mismatch.cause:
        return result.mismatch.cause.code.value
    if result.status.value in CORRECT or result.status.value in _VAGUE:
        return result.status.value
    reason = result.reason or ""
    return next((code for words, code in _CODE_OF_REASON if re.search(words, reason)), None)


def grade_explanation(cause: str, code: str | None) -> str:
    """Compare the code of an explanation with the true cause."""
    if code is None:
        return "absent"
    if cause in CORRECT.get(code, ()):
        return "correct"
    return "vague" if code in _VAGUE else "misleading"


def explain(path: Path, failed: list[Any]) -> dict[str, Any]:
    """Return the explanation of a kernel's first failed case, with its grade and all codes."""
    cause = true_cause(path)
    codes = [explanation_of(result) for result in failed]
    first = codes[0] if codes else None
    return {
        "cause_code": first,
        "codes": sorted({str(code) for code in codes}),
        "explanation": grade_explanation(cause, first) if cause and codes else None,
    }
