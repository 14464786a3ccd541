"""IO contracts: the guide's examples, one test a rule, and all faults at once."""

from __future__ import annotations

import base64
import contextlib
import copy
import json
import subprocess
import sys
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triton_magics import io_contract
from triton_magics.io_contract import (
    BadContract,
    IOContract,
    IOContractBuilder,
    LaunchConfig,
    create_arange_spec,
    create_full_spec,
    create_ones_spec,
    create_randn_spec,
    create_uniform_spec,
    create_zeros_spec,
    find_language_faults,
    read_contract,
)

ADD = {
    "kernel": {
        "source_code": "...",
        "kernel_type": "triton",
        "io": {
            "args": [
                {
                    "name": "x",
                    "type": "tensor",
                    "tensor_spec": {
                        "shape": [1024],
                        "dtype": "float32",
                        "init": {"kind": "randn", "seed": 42},
                    },
                    "role": "input",
                },
                {
                    "name": "BLOCK_SIZE",
                    "type": "int",
                    "value": 256,
                    "role": "input",
                    "is_meta": True,
                },
            ],
            "launch": {"grid": {"x": 4, "y": 1, "z": 1}, "num_warps": 4},
        },
    }
}


def contract_of(**changes):
    """Return the raw contract of one tensor, with changes to it, by dotted path."""
    raw = {
        "args": [
            {
                "name": "x",
                "type": "tensor",
                "role": "input",
                "tensor_spec": {"shape": [4], "dtype": "float32", "init": {"kind": "randn"}},
            },
            {"name": "n", "type": "int", "value": 4},
        ],
        "launch": {"grid": {"x": 4}},
    }
    for path, value in changes.items():
        place = raw
        *parents, last = [int(p) if p.isdigit() else p for p in path.split("__")]
        for part in parents:
            place = place[part]
        place[last] = value
    return raw


def faults_of(raw):
    with pytest.raises(BadContract) as error:
        read_contract(raw)
    return {fault.field: fault for fault in error.value.faults}


def test_a_server_request_is_read_as_json_and_as_mapping():
    contract = read_contract(json.dumps(ADD))
    assert contract == read_contract(ADD) == read_contract(ADD["kernel"]["io"])
    assert contract.args[0].tensor_spec.init.seed == 42
    assert contract.args[1].is_meta
    assert contract.launch.grid.xyz == (4, 1, 1)
    assert json.loads(contract.to_json()) == ADD["kernel"]["io"]


def test_the_builder_takes_shapes_and_specs():
    contract = (
        IOContractBuilder()
        .add_input_tensor("x", shape=[1024], dtype="float32", init_kind="randn")
        .add_output_tensor("y", shape=[1024], dtype="float32")
        .add_meta_param("BLOCK_SIZE", value=256)
        .set_launch_config(grid=(4, 1, 1), num_warps=4)
        .build()
    )
    with_specs = (
        IOContractBuilder()
        .add_input_tensor("x", create_randn_spec([1024]))
        .add_output_tensor("y", io_contract.create_tensor_spec([1024]))
        .add_meta_param("BLOCK_SIZE", 256)
        .set_launch_config(LaunchConfig(grid=(4, 1, 1), num_warps=4))
        .build()
    )
    assert contract == with_specs
    assert contract.output_names == ("y",)
    assert contract.launch.num_warps == 4


def test_helpers_keep_a_zero():
    assert create_randn_spec([2], mean=0.0, std=0.0).init.std == 0
    assert create_uniform_spec([2], low=-1.0, high=0.0).init.high == 0
    assert create_full_spec([2], 0).init.fill_value == 0
    assert create_arange_spec([2], step=0).init.step == 0
    assert create_zeros_spec(shape=[2, 3], dtype="int8").n_bytes == 6
    assert create_ones_spec([2]).init.kind == "ones"


def test_two_builds_share_nothing():
    builder = IOContractBuilder().add_inout_tensor("x", shape=[4]).set_grid(2).set_block(32)
    first = builder.build()
    second = builder.add_scalar("n", "int", 4).build()
    assert [a.name for a in first.args] == ["x"]
    assert [a.name for a in second.args] == ["x", "n"]
    assert second.launch.block.xyz == (32, 1, 1)


def test_a_contract_is_saved_and_loaded(tmp_path):
    contract = read_contract(ADD)
    contract.save_to_file(tmp_path / "io.json")
    assert IOContractBuilder.load_from_file(tmp_path / "io.json") == contract
    with pytest.raises(BadContract, match="nowhere"):
        IOContract.load_from_file(tmp_path / "nowhere.json")


DATA = base64.b64encode(bytes(16)).decode()
RULES = [
    ("args[0].tensor_spec.shape[0]", {"args__0__tensor_spec__shape": [0]}, "from 1"),
    ("args[0].tensor_spec.shape[0]", {"args__0__tensor_spec__shape": [1.5]}, "whole number"),
    ("args[0].tensor_spec.shape", {"args__0__tensor_spec__shape": [1] * 9}, ""),
    ("args[0].tensor_spec.dtype", {"args__0__tensor_spec__dtype": "float31"}, "bfloat16"),
    ("args[0].tensor_spec.init.kind", {"args__0__tensor_spec__init__kind": "normal"}, "uniform"),
    ("args[0].tensor_spec.init.seed", {"args__0__tensor_spec__init__seed": -1}, "from 0"),
    ("args[0].tensor_spec.init.high", {"args__0__tensor_spec__init__high": 2.0}, "seed, mean"),
    ("args[0].tensor_spec.init.std", {"args__0__tensor_spec__init__std": -1.0}, "from 0"),
    (
        "args[0].tensor_spec.init.mean",
        {"args__0__tensor_spec__init__mean": float("nan")},
        "number",
    ),
    (
        "args[0].tensor_spec.init.high",
        {"args__0__tensor_spec__init": {"kind": "uniform", "low": 1.0, "high": 1.0}},
        "above low",
    ),
    (
        "args[0].tensor_spec.init.fill_value",
        {"args__0__tensor_spec__init": {"kind": "full"}},
        "a number",
    ),
    (
        "args[0].tensor_spec.init.fill_value",
        {
            "args__0__tensor_spec__init": {"kind": "full", "fill_value": 300},
            "args__0__tensor_spec__dtype": "int8",
        },
        "-128 to 127",
    ),
    (
        "args[0].tensor_spec.init.step",
        {
            "args__0__tensor_spec__init": {"kind": "arange", "step": 100},
            "args__0__tensor_spec__dtype": "uint8",
        },
        "0 to 255",
    ),
    ("args[0].tensor_spec.init", {"args__0__tensor_spec": {"shape": [4]}}, "init or data"),
    (
        "args[0].tensor_spec.init",
        {"args__0__tensor_spec__data": {"data_b64": DATA, "dtype": "float32", "shape": [4]}},
        "either",
    ),
    ("args[0].tensor_spec", {"args__0": {"name": "x", "type": "tensor"}}, "shape"),
    ("args[0].tensor_spec.init", {"args__0__role": "output"}, "inout"),
    ("args[0].value", {"args__0__value": 3}, "data"),
    ("args[0].is_meta", {"args__0__is_meta": True}, "false"),
    ("args[0].name", {"args__0__name": "a b"}, "letters"),
    ("args[0].name", {"args__0__name": "class"}, "letters"),
    ("args[1].name", {"args__1__name": "x"}, ""),
    ("args[1].value", {"args__1__value": True}, "256"),
    ("args[1].value", {"args__1__value": None}, "256"),
    ("args[1].value", {"args__1__type": "str"}, '"sum"'),
    ("args[1].role", {"args__1__role": "output"}, "tensor"),
    ("args[1].tensor_spec", {"args__1__tensor_spec": {"shape": [4]}}, "tensor"),
    ("args[1].type", {"args__1__type": "complex"}, "tensor"),
    ("args[1].rolle", {"args__1__rolle": "input"}, "role"),
    ("args", {"args": []}, ""),
    ("args", {"args__0__tensor_spec__shape": [2**32 + 1]}, "16 GiB"),
    ("outputs[0]", {"outputs": ["x"]}, "no outputs"),
    ("launch.grid.x", {"launch__grid__x": 2**31}, "below"),
    ("launch.grid.y", {"launch__grid": [1, 65536]}, "up to 65535"),
    ("launch.grid.x", {"launch__grid": 0}, "from 1"),
    ("launch.grid", {"launch": {}}, ""),
    ("launch.block", {"launch__block": [1024, 2]}, "1024"),
    ("launch.block.z", {"launch__block": [1, 1, 65]}, "64"),
    ("launch.num_warps", {"launch__num_warps": 3}, "32"),
    ("launch.num_stages", {"launch__num_stages": 9}, "8"),
    ("launch.shared_mem_bytes", {"launch__shared_mem_bytes": 2**20}, "232448"),
    ("gridd", {"gridd": 3}, "launch"),
]


@pytest.mark.parametrize(("field", "changes", "allowed"), RULES)
def test_each_rule_names_its_field_and_what_is_allowed(field, changes, allowed):
    read_contract(contract_of())
    faults = faults_of(contract_of(**changes))
    assert allowed in faults[field].allowed


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"data_b64": "!!!", "dtype": "float32", "shape": [4]}, "decoded"),
        ({"data_b64": DATA[:-4], "dtype": "float32", "shape": [4]}, "bytes"),
        ({"data_b64": DATA * 2, "dtype": "float32", "shape": [4]}, "more bytes"),
        (
            {
                "data_b64": base64.b64encode(zlib.compress(bytes(10**7))).decode(),
                "dtype": "float32",
                "shape": [4],
                "compress": "zlib",
            },
            "17 bytes",
        ),
    ],
)
def test_data_is_as_long_as_its_tensor(data, message):
    spec = {"shape": [4], "dtype": "float32", "data": data}
    faults = faults_of(contract_of(args__0__tensor_spec=spec))
    assert message in faults["args[0].tensor_spec.data.data_b64"].message


def test_data_has_the_shape_and_dtype_of_its_tensor():
    data = {"data_b64": DATA, "dtype": "int32", "shape": [2, 2]}
    faults = faults_of(contract_of(args__0__tensor_spec={"shape": [4], "data": data}))
    assert set(faults) == {"args[0].tensor_spec.data.shape", "args[0].tensor_spec.data.dtype"}


def test_all_faults_are_reported_at_once():
    raw = contract_of(
        args__0__tensor_spec__dtype="half",
        args__0__tensor_spec__shape=[-1],
        args__0__name="n",
        args__1__value="four",
        launch__num_warps=5,
        launch__grid__z=0,
    )
    faults = faults_of(raw)
    assert set(faults) == {
        "args[0].tensor_spec.dtype",
        "args[0].tensor_spec.shape[0]",
        "args[1].name",
        "args[1].value",
        "launch.num_warps",
        "launch.grid.z",
    }
    with pytest.raises(BadContract) as error:
        read_contract(raw)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"args": 3}', '{"kernel": {}}'])
def test_text_that_is_no_contract_is_refused(text):
    with pytest.raises(BadContract):
        read_contract(text)


def test_a_launch_belongs_to_its_language():
    raw = contract_of(launch={"grid": 4, "num_warps": 4, "block": 128}, args__1__is_meta=True)
    contract = read_contract(raw)
    fields = {
        language: [fault.field for fault in find_language_faults(contract, language)]
        for language in ("triton", "cuda", "torch")
    }
    assert fields == {
        "triton": ["launch.block"],
        "cuda": ["launch.num_warps", "args[1].is_meta"],
        "torch": [],
    }
    bare = read_contract({"args": raw["args"]})
    assert [f.field for f in find_language_faults(bare, "cuda")] == ["launch"]


SCALARS = st.one_of(
    st.tuples(st.just("int"), st.integers(-(2**40), 2**40)),
    st.tuples(st.just("float"), st.floats(allow_nan=False, allow_infinity=False)),
    st.tuples(st.just("str"), st.text(max_size=5)),
    st.tuples(st.just("bool"), st.booleans()),
)
INITS = st.one_of(
    st.fixed_dictionaries({"kind": st.sampled_from(["randn", "zeros", "ones", "uniform"])}),
    st.fixed_dictionaries({"kind": st.just("randn"), "seed": st.integers(0, 2**63 - 1)}),
    st.fixed_dictionaries({"kind": st.just("full"), "fill_value": st.integers(0, 1)}),
)
SPECS = st.fixed_dictionaries(
    {
        "shape": st.lists(st.integers(1, 9), max_size=4),
        "dtype": st.sampled_from(["float16", "int8", "bool", "float8_e5m2"]),
        "init": INITS,
    }
)


@settings(max_examples=30, deadline=None)
@given(st.lists(SCALARS, max_size=3), st.lists(SPECS, min_size=1, max_size=3))
def test_json_and_values_round_trip(scalars, specs):
    args = [{"name": f"s{i}", "type": t, "value": v} for i, (t, v) in enumerate(scalars)]
    args += [{"name": f"t{i}", "type": "tensor", "tensor_spec": s} for i, s in enumerate(specs)]
    contract = read_contract({"args": args, "launch": {"grid": {"x": 1}}})
    assert read_contract(contract.to_json()) == contract
    assert json.loads(contract.to_json())["args"] == json.loads(json.dumps(args))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["args", "name", "type", "tensor_spec", "shape", "dtype", "init"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(VALUES, st.sampled_from(["args", "launch", "outputs"]))
def test_no_value_raises_anything_but_a_bad_contract(value, field):
    raw = {**copy.deepcopy(contract_of()), field: value}
    with contextlib.suppress(BadContract):
        read_contract(raw)


def test_contracts_import_no_torch():
    program = "import sys, triton_magics.io_contract; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
