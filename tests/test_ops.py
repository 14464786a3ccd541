"""Tests that every shipped op has the form that the harness needs, and of own ops' errors."""

from __future__ import annotations

import inspect
import math
import re
from pathlib import Path

import pytest
import torch

from triton_magics import operators
from triton_magics.errors import BadKernelSource, BadValue, UnknownOp
from triton_magics.harness.correctness import oracle
from triton_magics.harness.correctness.row_chunks import split_outputs

CPU = torch.device("cpu")
NAMES = list(operators.names())
GOOD = '''"""Twice x."""
import torch

def make_inputs(shape, dtype, device, generator):
    return torch.randn(shape, dtype=dtype, device=device, generator=generator)

def reference(x):
    return 2 * x
'''


def inputs_of(name, shape=None, dtype=torch.float32, seed=0):
    op = operators.load(name)
    generator = torch.Generator().manual_seed(seed)
    return op.make_inputs(shape or op.shapes[1], dtype, CPU, generator)


def tensors(values):
    return [v for v in values if isinstance(v, torch.Tensor)]


def plain(values):
    return [v for v in values if not isinstance(v, torch.Tensor)]


def upcast(values):
    floating = [isinstance(v, torch.Tensor) and v.is_floating_point() for v in values]
    return [v.double() if f else v for v, f in zip(values, floating, strict=True)]


def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(tensors(a), tensors(b), strict=True)) and plain(
        a
    ) == plain(b)


# ------------------------------------------------------------------------------ every op


@pytest.mark.parametrize("name", NAMES)
def test_inputs_are_made_without_memory(name):
    op = operators.load(name)
    generator = torch.Generator().manual_seed(3)
    values = op.make_inputs(op.shapes[1], torch.float32, torch.device("meta"), generator)
    assert plain(values) == plain(inputs_of(name, seed=3))
    assert [x.shape for x in tensors(values)] == [x.shape for x in tensors(inputs_of(name))]


@pytest.mark.parametrize(("name", "n"), [("add", 4), ("layer_norm", 3)])
def test_a_scalar_takes_each_of_its_values(name, n):
    assert len({plain(inputs_of(name, seed=seed))[0] for seed in range(40)}) == n


@pytest.mark.parametrize("name", [n for n in NAMES if n != "dropout"])
def test_float32_agrees_with_float64_on_every_cheap_shape(name):
    op = operators.load(name)
    assert op.check is None
    for seed, shape in enumerate(op.shapes):
        inputs = inputs_of(name, shape, seed=seed)
        got, oracle = op.reference(*inputs), op.reference(*upcast(inputs))
        assert oracle.dtype == torch.float64
        torch.testing.assert_close(got.double(), oracle, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_outputs_keep_the_dtype_of_the_inputs(name, dtype):
    op = operators.load(name)
    if dtype not in op.dtypes:
        assert (name, dtype) == ("fp8_matmul", "float32")  # torch has no such product of float8
        return
    inputs = inputs_of(name, dtype=getattr(torch, dtype))
    floats = [t for t in tensors(inputs) if t.is_floating_point() and t.itemsize > 1]
    output = op.reference(*inputs)
    assert {t.dtype for t in floats} == {getattr(torch, dtype)} == {output.dtype}
    assert output.isfinite().all()


@pytest.mark.parametrize("name", NAMES)
def test_inputs_follow_from_the_seed(name):
    first, again, other = (inputs_of(name, seed=seed) for seed in (1, 1, 2))
    assert same(first, again)
    assert not torch.equal(first[0], other[0])


@pytest.mark.parametrize("name", NAMES)
def test_sizes_and_shapes_can_be_made(name):
    op = operators.load(name)
    assert list(op.sizes) == ["small", "medium", "large"]
    assert len(set(op.shapes)) == len(op.shapes) >= 8
    for shape in (op.sizes["small"], *op.shapes):
        assert tensors(inputs_of(name, shape))[0].numel() > 0
    volumes = [math.prod(shape) for shape in op.sizes.values()]
    assert volumes == sorted(volumes)


@pytest.mark.parametrize("name", NAMES)
def test_shapes_are_awkward(name):
    shapes = operators.load(name).shapes
    assert any(set(s[:-1]) == {1} for s in shapes), "one row"
    assert any(n > 128 and n % 128 for s in shapes for n in s), "beyond a block"
    odd = [s for s in shapes if len(s) > 1 and all(n & (n - 1) for n in s[-2:])]
    assert odd, "no power of two"


@pytest.mark.parametrize(
    ("name", "shape", "flops"),
    [
        ("vector_add", (3, 5), 30),
        ("vector_mul", (3, 5), 15),
        ("softmax", (3, 5), 75),
        ("matmul", (2, 3, 5), 60),
        ("attention", (1, 2, 3, 4), 2 * 2 * 2 * 3 * 3 * 4),
        ("mean", (3, 5), 18),
    ],
)
def test_flops_count_the_formula(name, shape, flops):
    assert operators.load(name).flops(*inputs_of(name, shape)) == flops


def test_every_op_counts_its_flops():
    for name in NAMES:
        assert operators.load(name).flops(*inputs_of(name)) > 0


@pytest.mark.parametrize(
    ("name", "index", "values"),
    [
        ("vector_add", 2, {1.0, 0.5, -2.0, 0.1}),
        ("layer_norm", 3, {1e-5, 1e-6, 1e-3}),
        ("dropout", 1, {0.5, 0.1, 0.0}),
        ("mha", 3, {True, False}),
        ("gqa", 3, {True, False}),
    ],
)
def test_scalar_parameters_vary_with_the_seed(name, index, values):
    assert {inputs_of(name, seed=seed)[index] for seed in range(40)} == values


@pytest.mark.parametrize(
    ("name", "index", "value"), [("dropout", 1, 0.5), ("mha", 3, True), ("gqa", 3, True)]
)
def test_a_parameter_that_changes_the_work_is_fixed_at_the_sizes(name, index, value):
    small = operators.load(name).sizes["small"]
    assert {inputs_of(name, small, seed=seed)[index] for seed in range(20)} == {value}


def test_alpha_changes_the_sum():
    x, y = torch.ones(3), torch.full((3,), 10.0)
    add = operators.load("add").reference
    assert add(x, y).tolist() == [11.0] * 3
    assert add(x, y, -2.0).tolist() == [-19.0] * 3


def test_a_causal_mask_hides_later_keys():
    q, k, v, _ = inputs_of("mha", (1, 1, 4, 64))
    mha = operators.load("mha").reference
    torch.testing.assert_close(mha(q, k, v, True)[0, 0, 0], v[0, 0, 0])
    assert (mha(q, k, v, True)[0, 0, 0] - mha(q, k, v, False)[0, 0, 0]).abs().max() > 0.01
    causal, full = (operators.load("mha").flops(q, k, v, c) for c in (True, False))
    assert (causal, full) == (4 * 10 * 64, 4 * 16 * 64)


def test_heads_of_a_group_share_keys_and_values():
    q, k, v, _ = inputs_of("gqa", (2, 6, 3, 5, 16))
    assert (q.shape, k.shape, v.shape) == ((2, 6, 5, 16), (2, 3, 5, 16), (2, 3, 5, 16))
    gqa, mha = (operators.load(name).reference for name in ("gqa", "mha"))
    for is_causal in (True, False):
        got = gqa(q, k, v, is_causal)
        for head in range(6):
            alone = (x[:, i : i + 1] for x, i in ((q, head), (k, head // 2), (v, head // 2)))
            torch.testing.assert_close(got[:, head : head + 1], mha(*alone, is_causal))


def test_cross_entropy_is_the_mean_over_rows():
    logits = torch.tensor([[0.0, 0.0], [0.0, 100.0]])
    loss = operators.load("cross_entropy").reference(logits, torch.tensor([0, 0]))
    assert loss.shape == ()
    assert loss.item() == pytest.approx((math.log(2) + 100) / 2)


def test_gelu_is_the_exact_form():
    x = torch.tensor([-3.0, 0.5, 2.0], dtype=torch.float64)
    exact = 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))
    torch.testing.assert_close(operators.load("gelu").reference(x), exact, rtol=1e-12, atol=1e-12)


def test_the_package_describes_every_name_that_an_op_may_define():
    read = re.findall(r'"([A-Z_]{5,})"|"([a-z_]+)", None\)', inspect.getsource(operators._op))
    names = {constant or function for constant, function in read}
    assert {"SIZES", "MUTATES", "scratch"} <= names
    missing = [name for name in sorted(names) if name not in operators.__doc__]
    assert missing == [], "describe them in the docstring of operators/__init__.py"


def test_aliases_load_the_same_op():
    assert operators.load("add") is operators.load("add")
    assert operators.load("add").name == "vector_add"
    assert operators.load("layernorm").name == "layer_norm"


def test_an_unknown_op_names_the_nearest():
    with pytest.raises(UnknownOp, match=r"'sofmax'\. Did you mean 'softmax'"):
        operators.load("sofmax")


# --------------------------------------------------------------------------------- own ops


def own(tmp_path: Path, source: str) -> operators.Op:
    path = tmp_path / "reference.py"
    path.write_text(source)
    return operators.load_file(path, "double")


def test_an_own_op_gets_the_defaults(tmp_path):
    op = own(tmp_path, GOOD)
    inputs = op.make_inputs((2, 3), torch.float32, CPU, torch.Generator().manual_seed(0))
    assert isinstance(inputs, tuple)
    assert torch.equal(op.reference(*inputs), 2 * inputs[0])
    assert op.sizes == {"small": (256, 256), "medium": (1024, 1024), "large": (4096, 4096)}
    assert ((1, 1) in op.shapes, op.dtypes, op.flops, op.bytes) == (True, ("float32",), None, None)
    assert (op.name, op.doc, op.op_class) == ("double", "Twice x.", "reduction")


def test_an_own_op_keeps_what_it_declares(tmp_path):
    extra = (
        'SIZES = {"small": (8,), "medium": (16,), "large": (32,)}\n'
        'DTYPES = ["float64"]\nOP_CLASS = "elementwise"\nREGIMES_SKIP = ("zeros",)\n'
        "def flops(x): return x.numel()\ndef bytes(x, output): return 1\n"
        "def check(inputs, output): return 'never right'\n"
    )
    op = own(tmp_path, GOOD + extra)
    assert op.sizes["large"] == (32,)
    assert all(len(shape) == 1 for shape in op.shapes)
    assert (op.dtypes, op.op_class, op.skip_values) == (("float64",), "elementwise", ("zeros",))
    assert op.flops(torch.ones(3)) == 3
    assert op.bytes(torch.ones(3), output=None) == 1
    assert op.check((), None, print) == "never right"


def test_default_shapes_have_as_many_dimensions_as_the_sizes(tmp_path):
    sizes = 'SIZES = {"small": (2, 3, 4), "medium": (4, 4, 4), "large": (8, 8, 8)}\n'
    assert {len(shape) for shape in own(tmp_path, GOOD + sizes).shapes} == {3}


def test_an_edit_of_the_same_length_is_seen(tmp_path):
    assert own(tmp_path, GOOD).reference(1) == 2
    assert own(tmp_path, GOOD.replace("2 * x", "3 * x")).reference(1) == 3
    assert not list(tmp_path.rglob("*.pyc"))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (GOOD.replace("def reference", "def refrence"), r"reference is missing; write def refer"),
        (GOOD.replace("make_inputs", "inputs"), r"make_inputs is missing; write def make_inputs"),
        (GOOD.replace(", generator)", ")"), r"must take \(shape, dtype, device, generator\)"),
        (GOOD + "reference = 3\n", "reference is no function but a value of type int"),
    ],
)
def test_error_of_an_own_op_names_the_missing_function(tmp_path, source, message):
    with pytest.raises(BadKernelSource, match=message):
        own(tmp_path, source)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("SIZES = {}", "SIZES is {}; write at least one shape with its name"),
        ("SIZES = (8, 8)", r"SIZES is \(8, 8\); write at least one shape with its name"),
        ('SIZES = {"7x13": (7, 13)}', "'7x13' can't name a size: write a letter, then"),
        ('SIZES = {"own": (7, 13)}', "'own' can't name a size"),
        ('SIZES = {"a": (7, 0)}', r"SIZES\['a'\] is \(7, 0\); write whole numbers >= 1"),
        ("SHAPES = ((0, 3),)", r"SHAPES\[0\] is \(0, 3\)"),
        ("SHAPES = (7, 13)", r"SHAPES\[0\] is 7"),
        ('DTYPES = "float32"', "DTYPES must be a tuple of names"),
        ('DTYPES = ("fp32",)', "'fp32' in DTYPES is no name of a real torch dtype"),
        ('LAYOUTS = ("transposed",)', 'LAYOUTS is .*"contiguous" among them'),
        ('LAYOUTS = ("contiguous", "strided rows")', "'strided rows' in LAYOUTS. Did you mean"),
        ('OP_CLASS = "reduce"', "'reduce' in OP_CLASS.*'reduction'"),
        ('REGIMES_SKIP = ("zero",)', "'zero' in REGIMES_SKIP. Did you mean 'zeros'"),
    ],
)
def test_error_of_an_own_op_names_the_wrong_constant(tmp_path, line, message):
    with pytest.raises(BadValue, match=message):
        own(tmp_path, f"{GOOD}{line}\n")


def test_inputs_that_are_no_tuple_are_refused(tmp_path):
    source = GOOD.replace("return torch.randn", "return dict(x=1) or torch.randn")
    with pytest.raises(BadValue, match="make_inputs returned a dict; return a tuple"):
        own(tmp_path, source).make_inputs((2,), torch.float32, CPU, torch.Generator())


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(BadKernelSource, match=r"there is no file .*nowhere\.py"):
        operators.load_file(tmp_path / "nowhere.py", "double")


def test_what_an_own_file_raises_is_not_hidden(tmp_path):
    with pytest.raises(ZeroDivisionError):
        own(tmp_path, "1 / 0\n")


@pytest.mark.parametrize("name", [n for n in NAMES if operators.load(n).independent])
def test_the_parts_in_which_an_op_may_be_cut_make_its_whole(name):
    op = operators.load(name)
    dim = next(d for d in op.independent if d is not None)
    every = (upcast(inputs_of(name, shape)) for shape in op.shapes)
    inputs = next(i for i in every if i[0].dim() > 1 and i[0].shape[dim] >= 3)
    whole = op.reference(*inputs)
    chunks = split_outputs(
        op, inputs, (whole,), max_elements=max(whole.numel(), inputs[0].numel()) // 3
    )
    assert len(chunks) >= 3
    joined = torch.cat([op.reference(*c.slice_inputs(op, inputs)) for c in chunks], dim=dim)
    assert torch.allclose(joined, whole, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "shape", "more"),
    [
        ("cross_entropy", (1100, 1023), ()),
        ("cross_entropy", (3, 7), ()),
        ("attention", (1, 2, 800, 16), ()),
        ("mha", (1, 1, 1100, 16), (True,)),
        ("mha", (1, 2, 800, 16), (False,)),
        ("mha", (2, 3, 5, 16), (True,)),
        ("gqa", (1, 4, 2, 800, 16), (True,)),
        ("gqa", (2, 6, 3, 5, 16), (False,)),
    ],
)
def test_what_takes_less_memory_in_float64_is_the_reference(name, shape, more):
    op = operators.load(name)
    inputs = upcast(inputs_of(name, shape))
    inputs = (*inputs[: len(inputs) - len(more)], *more)
    whole = op.reference(*inputs)
    exact = oracle.evaluate(op, inputs)[1][0]
    assert exact is not whole
    assert torch.equal(exact, op.exact(*inputs))
    assert torch.allclose(exact, whole, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    ("name", "shape"), [("mha", (1, 2, 1025, 16)), ("gqa", (1, 2, 1, 1025, 16))]
)
def test_no_more_than_a_part_of_the_scores_is_held_in_float64(monkeypatch, name, shape):
    sizes = []
    softmax = torch.softmax
    monkeypatch.setattr(
        torch, "softmax", lambda x, dim: sizes.append(x.numel()) or softmax(x, dim=dim)
    )
    op = operators.load(name)
    oracle.evaluate(op, upcast(inputs_of(name, shape)))
    assert len(sizes) == 3
    assert max(sizes) <= 2**20


def test_a_single_row_of_a_reduction_is_never_cut():
    (row,) = inputs_of("softmax", (1025,))
    assert [
        c.dim for c in split_outputs(operators.load("softmax"), (row,), (row,), max_elements=100)
    ] == [None]
    assert len(split_outputs(operators.load("relu"), (row,), (row,), max_elements=100)) == 11


@pytest.mark.parametrize(
    ("free", "elements"),
    [(139, 2**27), (79, 5 * 2**24), (15, 2**24), (3, 2**22), (0, 2**20)],
)
def test_a_gpu_computes_more_of_a_result_the_more_memory_is_free(free, elements, monkeypatch):
    sizes = {"memory_reserved": 3 * 2**30, "memory_allocated": 2 * 2**30}  # torch can use 1 of them
    for name, size in sizes.items():
        monkeypatch.setattr(torch.cuda, name, lambda _, size=size: size)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (free * 2**30, 80 * 2**30))
    assert operators.elements_at_once(torch.device("cuda")) == elements
    assert operators.elements_at_once(torch.device("cpu")) == 2**20
