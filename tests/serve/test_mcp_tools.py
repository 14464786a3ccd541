"""The table of the MCP tools: complete, short, and read as models write."""

from __future__ import annotations

import ast
import json

import pytest

from tests.report_values import every_value
from triton_magics import verbs
from triton_magics.errors import UnknownName
from triton_magics.next_step import NextStep
from triton_magics.serve.mcp_result import MAX_HEADLINE, MAX_TEXT, result_of
from triton_magics.serve.mcp_tools import as_call, find, in_arguments, tools, verbs_of_tools
from triton_magics.verbs._base import args_of

GUIDE = {
    "get_overview", "get_triton_syntax", "get_torch_op_info", "get_kernel_template",
    "check_gpu_status", "get_current_status", "check_context_usage", "set_kernel_name",
    "write_kernel_code", "force_transition_to_write", "run_triton_kernel", "validate_correctness",
    "measure_kernel_time", "benchmark_kernel", "get_best_kernel", "get_server_stats",
    "get_job_status",
}  # fmt: skip
VALUES = every_value()
STEPS = (
    NextStep("validate", {"op": "softmax", "version": "v1", "shapes": [(3, 4)], "seed": 5}),
    NextStep("bench", {"op": "softmax", "versions": ["v1"]}),
    NextStep("kernel", {"op": "softmax", "version": "v2"}),
    NextStep("status", {"op": "softmax", "force_write": "too slow"}),
    NextStep("best", {"op": "softmax", "now": True}),
    NextStep("diff", {"op": "softmax", "before": "v1", "after": "v2"}),
)


def test_every_verb_and_every_name_of_the_guide_is_a_tool() -> None:
    assert set(verbs.names()) <= {*verbs_of_tools(), "check_regressions", "history", "metrics"}
    assert {tool.name for tool in tools()} >= GUIDE
    assert len({tool.name for tool in tools()}) == len(tools())


@pytest.mark.parametrize("tool", [t for t in tools() if t.of_verb], ids=lambda tool: tool.name)
def test_a_tool_has_the_fields_of_its_verb(tool) -> None:
    assert tool.of_verb is not None
    fields = tool.of_verb.request.model_fields
    left_out = {
        name
        for name in fields
        if any(a.kind == "python" or a.is_local for a in args_of(fields[name]))
    }
    listed = set(tool.input_schema["properties"]) - {"wait_s"}
    names = {tool.name_of(name) for name in fields}
    assert listed | {tool.name_of(n) for n in (*left_out, *tool.hide, *tool.fixed)} == names


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.verb)
def test_a_next_step_is_a_call_that_the_server_takes(step: NextStep) -> None:
    call = ast.parse(as_call(step).replace("true", "True"), mode="eval").body
    assert isinstance(call, ast.Call)
    assert isinstance(call.func, ast.Name)
    tool = find(call.func.id)
    arguments = {k.arg: ast.literal_eval(k.value) for k in call.keywords}
    assert tool.verb == step.verb
    assert tool.sort(arguments) == (step.arguments, [])


@pytest.mark.parametrize(
    ("tool", "argument", "text", "value"),
    [
        ("validate_correctness", "dtypes", "float32,float16", ("float32", "float16")),
        ("validate_correctness", "shapes", "257x1023", [(257, 1023)]),
        ("validate_correctness", "shapes", ["3x4"], [(3, 4)]),
        ("validate_correctness", "seed", "7", 7),
        ("validate_correctness", "rtol", "1e-3", 1e-3),
        ("validate_correctness", "sanitize", "True", True),
        ("run_triton_kernel", "shape", "3x4", (3, 4)),
        ("sweep", "knobs", '{"BLOCK_SIZE": [256]}', {"BLOCK_SIZE": [256]}),
    ],
)
def test_values_are_read_as_models_write_them(
    tool: str, argument: str, text: object, value: object
) -> None:
    assert find(tool).sort({argument: text}) == ({argument: value}, [])


def test_other_names_of_an_argument_are_taken_once() -> None:
    assert find("write_kernel_code").sort({"code": "x"}) == ({"source": "x"}, [])
    assert find("get_torch_op_info").sort({"op_name": "softmax"}) == ({"op": "softmax"}, [])
    _, (fault,) = find("write_kernel_code").sort({"code": "x", "source": "y"})
    assert fault == "source is given twice: it is another name of source"


def test_unknown_arguments_name_the_nearest_and_all() -> None:
    _, faults = find("validate_correctness").sort({"dtyps": "float32", "op": "relu", "x": 1})
    assert faults[0] == "validate_correctness has no argument 'dtyps'. Did you mean 'dtypes'?"
    assert faults[1].startswith("validate_correctness has no argument 'x'. It has op, version")


def test_several_unknown_arguments_are_one_sentence_each() -> None:
    _, faults = find("get_job_status").sort({"foo": 1, "bar": 2})
    assert "; ".join(faults) == (
        "get_job_status has no argument 'foo'; get_job_status has no argument 'bar'. "
        "It has job_id, wait_s, cancel"
    )


def test_a_verb_finds_its_tool_and_a_wrong_name_the_nearest() -> None:
    assert find("bench").name == "benchmark_kernel"
    assert find("status").name == "get_current_status"
    with pytest.raises(UnknownName, match="Did you mean 'benchmark_kernel'"):
        find("benchmark_kernal")


def test_a_message_names_arguments_in_place_of_flags() -> None:
    assert in_arguments("use --now, or --technique tiling; not --nonsense") == (
        "use now, or technique tiling; not --nonsense"
    )


@pytest.mark.parametrize("name", VALUES)
def test_a_result_is_short_and_begins_with_its_headline(name: str) -> None:
    value = VALUES[name]
    verb = verbs.load("validate")
    result = result_of(verb, value, as_call, uri="triton://results/1", next=("plan()",))
    assert len(result.text) <= MAX_TEXT
    assert 0 < len(result.headline) <= MAX_HEADLINE
    assert "\n" not in result.headline
    assert len(json.dumps(result.as_json(), ensure_ascii=False)) <= 8_000
    assert result.as_text().startswith(result.headline)
    assert result.as_text().endswith("next: plan()")
    assert "%triton_" not in result.as_text().replace("%triton_config", "")


def test_a_long_text_is_cut_at_a_line_and_names_the_rest() -> None:
    from triton_magics.serve.mcp_result import cut

    text = cut("\n".join(f"line {i}" for i in range(2_000)), "triton://results/1")
    assert len(text) <= MAX_TEXT
    *lines, last = text.splitlines()
    assert lines == [f"line {i}" for i in range(len(lines))]
    assert "triton://results/1 has the rest" in last
