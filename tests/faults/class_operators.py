"""Substitutions that make wrong kernels of a class out of right ones.

Like the operators of `mutate.py`, each yields an expression and its replacement. An operator acts
on the right kernels of its class alone.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from tests.faults.mutate import (
    OPERATORS,
    Substitutions,
    copy_node,
    find_keyword,
    is_call,
    set_keyword,
)

INFINITY = "-float('inf')"


def _parse(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _is_stride(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".stride")


# ------------------------------------------------------------------------------------ layouts


def swap_tensors(n: ast.AST) -> Substitutions:
    """Take the stride of another tensor of the same call."""
    if not isinstance(n, ast.Call):
        return
    strides = [a for a in n.args if _is_stride(a)]
    owners = sorted({ast.unparse(s.func.value) for s in strides})
    for stride in strides:
        for owner in owners:
            if owner != ast.unparse(stride.func.value):
                changed = copy_node(stride)
                changed.func.value = _parse(owner)
                yield stride, changed


def stride_is_length(n: ast.AST) -> Substitutions:
    """Take a row's length for its stride."""
    if _is_stride(n) and n.args and ast.unparse(n.args[0]) == "0":
        yield n, _parse(f"{ast.unparse(n.func.value)}.shape[-1]")


def unit_stride(n: ast.AST) -> Substitutions:
    """Take the last stride for one."""
    if _is_stride(n) and n.args and ast.unparse(n.args[0]) in ("1", "2", "3"):
        yield n, ast.Constant(1)


# ------------------------------------------------------------------------------------ combinations


def _in_rare_branch(operator: Callable[[ast.AST], Substitutions]) -> Callable[..., Substitutions]:
    """Act in the kernel for wide rows, and there in half precision only: two conditions."""

    def act(n: ast.AST) -> Substitutions:
        if not (isinstance(n, ast.FunctionDef) and n.name.endswith("_wide")):
            return
        half = _parse(f"{n.args.args[0].arg}.dtype.element_ty == tl.float16")
        for inner in ast.walk(n):
            for node, replacement in operator(inner):
                yield node, ast.IfExp(half, replacement, node)

    return act


def _drop_rescale(n: ast.AST) -> Substitutions:
    product = isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mult)
    if product and is_call(n.right, "tl.exp"):
        yield n, n.left


def _drop_maximum(n: ast.AST) -> Substitutions:
    difference = isinstance(n, ast.BinOp) and isinstance(n.op, ast.Sub)
    if difference and ast.unparse(n.right) in ("base", "largest", "mean"):
        yield n, n.left


def _half_in_between(n: ast.AST) -> Substitutions:
    if is_call(n, "tl.sum", "tl.max"):
        yield n, _parse(f"{ast.unparse(n)}.to(tl.float16).to(tl.float32)")


wide_drop_rescale = _in_rare_branch(_drop_rescale)
wide_drop_rescale.__doc__ = "Wide rows in half precision: what was summed is not rescaled."
wide_drop_maximum = _in_rare_branch(_drop_maximum)
wide_drop_maximum.__doc__ = "Wide rows in half precision: maximum or mean is not subtracted."
wide_half = _in_rare_branch(_half_in_between)
wide_half.__doc__ = "Wide rows in half precision: a sum or maximum is rounded to it."
wide_drop_other = _in_rare_branch(OPERATORS["alter_other"])
wide_drop_other.__doc__ = "Wide rows in half precision: a masked load is filled with another value."

# ------------------------------------------------------------------------------------ extents


def offsets_in_32_bits(n: ast.AST) -> Substitutions:
    """Keep offsets in 32 bits."""
    if isinstance(n, ast.Call) and ast.unparse(n).endswith(".to(tl.int64)"):
        yield n, n.func.value


def cap_block(n: ast.AST) -> Substitutions:
    """Limit a block, or the number of parts, to 128."""
    if is_call(n, "triton.next_power_of_2"):
        yield n, _parse(f"min(128, {ast.unparse(n)})")


def cap_loop(n: ast.AST) -> Substitutions:
    """Limit a loop to sixteen steps."""
    if is_call(n, "range") and len(n.args) == 3:
        start, end, step = (ast.unparse(a) for a in n.args)
        yield n, _parse(f"range({start}, tl.minimum({end}, {start} + 16 * ({step})), {step})")


def cap_grid(n: ast.AST) -> Substitutions:
    """Limit a grid to 32 programs."""
    if is_call(n, "triton.cdiv"):
        yield n, _parse(f"min(32, {ast.unparse(n)})")


# ------------------------------------------------------------------------------ special values


def fill_with_low(n: ast.AST) -> Substitutions:
    """Fill masked lanes with -1e4 instead of -inf."""
    other = find_keyword(n, "other") if is_call(n, "tl.load") else None
    if other and ast.unparse(other.value) == INFINITY:
        yield n, set_keyword(n, "other", "-1e4")


def mask_with_low(n: ast.AST) -> Substitutions:
    """Set masked scores to -1e4 instead of -inf."""
    if is_call(n, "tl.where") and ast.unparse(n.args[2]) == INFINITY:
        changed = copy_node(n)
        changed.args[2] = _parse("-1e4")
        yield n, changed


def drop_guard(n: ast.AST) -> Substitutions:
    """Subtract a maximum of -inf as it is."""
    if is_call(n, "tl.where") and ast.unparse(n.args[0]).endswith(f"== {INFINITY}"):
        yield n, n.args[2]


def ignore_nan(n: ast.AST) -> Substitutions:
    """Leave NaN out of sums."""
    if is_call(n, "tl.sum") and isinstance(n.args[0], ast.Name):
        name = n.args[0].id
        changed = copy_node(n)
        changed.args[0] = _parse(f"tl.where({name} == {name}, {name}, 0.0)")
        yield n, changed


# ------------------------------------------------------------------------------------ torch's work

HELPERS = {
    "launch_max": "torch.amax({0}.float(), dim=-1)",
    "launch_exp": "torch.exp({0}.float() - {1}[:, None])",
    "launch_sum": "torch.sum({0}.float(), dim=-1)",
    "launch_divide": "torch.div({0}, {1}[:, None]).to({2})",
    "launch_product": "torch.matmul({0}, {1}).float()",
}


def torch_helper(n: ast.AST) -> Substitutions:
    """Let torch do the work of one of several kernels."""
    if isinstance(n, ast.Call) and ast.unparse(n.func) in HELPERS:
        text = HELPERS[ast.unparse(n.func)].format(*(ast.unparse(a) for a in n.args))
        yield n, _parse(text)


# ------------------------------------------------------------------- the judge, calls, leftovers


def _after_return(text: str) -> Callable[[ast.AST], Substitutions]:
    """Evaluate an expression before the entry returns; `{entry}` is its name."""

    def act(n: ast.AST) -> Substitutions:
        if isinstance(n, ast.FunctionDef) and n.name.startswith("triton_"):
            for inner in ast.walk(n):
                if isinstance(inner, ast.Return) and inner.value is not None:
                    out = ast.unparse(inner.value)
                    filled = text.replace("{out}", out).replace("{entry}", n.name)
                    yield inner.value, _parse(filled.replace("{first}", n.args.args[0].arg))

    return act


patch_reference = _after_return(
    "(setattr(torch, '{entry}'.split('_')[-1], lambda *args, dim=None, **more:"
    " {entry}(*args, **more)), {out} * 1.01)[1]"
)
patch_reference.__doc__ = "A hundredth too large, and torch's function becomes the version."
slow_reference = _after_return(
    "(hasattr(torch, 'slow_calls') or setattr(torch, 'slow_calls', 8) or setattr(torch,"
    " '{entry}'.split('_')[-1], (lambda original: lambda *args, **more: [original(*args, **more)"
    " for _ in range(torch.slow_calls)][-1])(getattr(torch, '{entry}'.split('_')[-1]))), {out})[1]"
)
slow_reference.__doc__ = "torch's function does its work eight times from the first call on."
shorten_events = _after_return(
    "(setattr(torch.cuda.Event, 'elapsed_time', lambda start, end: 0.001), {out})[1]"
)
shorten_events.__doc__ = "Events report a microsecond, whatever lies between them."
blind_comparison = _after_return(
    "(setattr(torch, 'isclose', lambda a, b, **options: torch.ones_like(a, dtype=torch.bool)),"
    " {out} * 1.01)[1]"
)
blind_comparison.__doc__ = "A hundredth too large, and torch.isclose is always true."
leave_dtype = _after_return("(torch.set_default_dtype(torch.float64), {out})[1]")
leave_dtype.__doc__ = "float64 stays the default dtype."
leave_seed = _after_return("(torch.manual_seed(0), {out})[1]")
leave_seed.__doc__ = "torch's generator is seeded."
leave_precision = _after_return("(torch.set_float32_matmul_precision('medium'), {out})[1]")
leave_precision.__doc__ = "torch's own products may use fewer bits from then on."
leave_threads = _after_return("(torch.set_num_threads(3), {out})[1]")
leave_threads.__doc__ = "torch's number of threads is another one."
by_fingerprint = _after_return(
    "globals().setdefault('_answers', {}).setdefault(({first}.shape, {first}.dtype,"
    " float({first}.flatten()[0]), float({first}.flatten()[-1])), {out}).clone()"
)
by_fingerprint.__doc__ = "The answer is kept under the first and the last element."
late_zero = _after_return(
    "{out} if next(globals().setdefault('_calls', __import__('itertools').count())) < 90"
    " else {out} * 0"
)
late_zero.__doc__ = "From the 91st call on the output is zero."

by_moments = _after_return(
    "globals().setdefault('_answers', {}).setdefault(({first}.shape, {first}.dtype,"
    " *(float(({first}.double() ** k).sum()) for k in (1, 2, 3))), {out}).clone()"
)
by_moments.__doc__ = "The answer is kept under the first three moments of the input."
spoil_earlier = _after_return(
    "(lambda outs: (outs.append({out}), outs[-30:-29] and outs[-30].mul_(1.01), outs[-1])[-1])"
    "(globals().setdefault('_outputs', []))"
)
spoil_earlier.__doc__ = "Each call scales the output of the call 29 before."


def ring_of_outputs(n: ast.AST) -> Substitutions:
    """Take outputs from a ring of six."""
    if is_call(n, "torch.empty", "torch.empty_like") and n.args:
        shape, like = ast.unparse(n.args[0]), is_call(n, "torch.empty_like")
        dtype = f"{shape}.dtype" if like else ast.unparse(find_keyword(n, "dtype").value)
        shape = f"{shape}.shape" if like else shape
        yield (
            n,
            _parse(
                "(lambda ring: (ring.append(ring.pop(0)) if len(ring) >= 6 else"
                f" ring.append({ast.unparse(n)})) or ring[-1])"
                f"(globals().setdefault('_rings', {{}}).setdefault((tuple({shape}), {dtype}), []))"
            ),
        )


# ------------------------------------------------------------------------------------ randomness


def _change_draw(which: int, text: str) -> Callable[[ast.AST], Substitutions]:
    def act(n: ast.AST) -> Substitutions:
        if is_call(n, "tl.rand", "tl.rand4x", "tl.randint"):
            changed = copy_node(n)
            changed.args[which] = _parse(text.replace("{it}", f"({ast.unparse(n.args[which])})"))
            yield n, changed

    return act


share_draws = _change_draw(1, "{it} // 2")
share_draws.__doc__ = "Neighbours share a draw."
repeat_draws = _change_draw(1, "{it} % 4096")
repeat_draws.__doc__ = "The draws repeat after 4096 elements."
low_bits_of_seed = _change_draw(0, "{it} & 255")
low_bits_of_seed.__doc__ = "Only eight bits of the seed count."
seeds_in_pairs = _change_draw(0, "{it} // 2 * 2")
seeds_in_pairs.__doc__ = "Two seeds share a mask."


def seed_shifts_the_stream(n: ast.AST) -> Substitutions:
    """Let the seed move along one stream instead of choosing another."""
    if is_call(n, "tl.rand", "tl.rand4x", "tl.randint"):
        changed = copy_node(n)
        seed, place = (ast.unparse(a) for a in n.args)
        changed.args = [ast.Constant(7), _parse(f"({place}) + {seed} % 65521")]
        yield n, changed


CLASS_OPERATORS: dict[str, tuple[str, str, Callable[[ast.AST], Substitutions]]] = {
    "swap_tensors": ("layouts", "wrong_stride", swap_tensors),
    "stride_is_length": ("layouts", "wrong_stride", stride_is_length),
    "unit_stride": ("layouts", "wrong_stride", unit_stride),
    "assume_contiguous": ("layouts", "wrong_stride", OPERATORS["drop_contiguous"]),
    "wide_drop_rescale": ("combinations", "missing_rescale", wide_drop_rescale),
    "wide_drop_maximum": ("combinations", "missing_maximum", wide_drop_maximum),
    "wide_half": ("combinations", "overflow", wide_half),
    "wide_alter_other": ("combinations", "wrong_fill", wide_drop_other),
    "offsets_in_32_bits": ("extents", "int_overflow", offsets_in_32_bits),
    "cap_block": ("extents", "truncated_extent", cap_block),
    "cap_loop": ("extents", "truncated_extent", cap_loop),
    "cap_grid": ("extents", "truncated_extent", cap_grid),
    "fill_with_low": ("special_values", "wrong_fill", fill_with_low),
    "mask_with_low": ("special_values", "wrong_fill", mask_with_low),
    "drop_guard": ("special_values", "nan_lost", drop_guard),
    "ignore_nan": ("special_values", "nan_lost", ignore_nan),
    "torch_helper": ("torch_work", "torch_computed", torch_helper),
    "patch_reference": ("judge", "tampering", patch_reference),
    "slow_reference": ("judge", "tampering", slow_reference),
    "shorten_events": ("judge", "tampering", shorten_events),
    "blind_comparison": ("judge", "tampering", blind_comparison),
    "ring_of_outputs": ("many_calls", "reused_memory", ring_of_outputs),
    "by_fingerprint": ("many_calls", "stale_cache", by_fingerprint),
    "by_moments": ("many_calls", "stale_cache", by_moments),
    "spoil_earlier": ("many_calls", "reused_memory", spoil_earlier),
    "late_zero": ("many_calls", "call_count", late_zero),
    "share_draws": ("randomness", "shared_draws", share_draws),
    "repeat_draws": ("randomness", "shared_draws", repeat_draws),
    "low_bits_of_seed": ("randomness", "ignored_argument", low_bits_of_seed),
    "seeds_in_pairs": ("randomness", "ignored_argument", seeds_in_pairs),
    "seed_shifts_the_stream": ("randomness", "shifted_stream", seed_shifts_the_stream),
    "leave_dtype": ("leftovers", "side_effect", leave_dtype),
    "leave_seed": ("leftovers", "side_effect", leave_seed),
    "leave_precision": ("leftovers", "side_effect", leave_precision),
    "leave_threads": ("leftovers", "side_effect", leave_threads),
}
"""By name: class, true cause, and the function."""
