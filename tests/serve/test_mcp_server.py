"""The MCP server, driven by the official client in memory."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest
from mcp.shared.exceptions import MCPError

from tests.fake_executor import FakeExecutor
from tests.serve.mcp_kit import SOURCE, Agent, connected, play, running
from tests.serve.serve_kit import Gate
from triton_magics.model import Status
from triton_magics.serve import mcp_waiting
from triton_magics.serve.mcp_server import make_server

ERAS = ("legacy", "auto")  # 2025-11 with a handshake, 2026-07 without


@pytest.mark.parametrize("mode", ERAS)
def test_softmax_goes_through_all_states(tmp_path: Path, mode: str) -> None:
    """A wrong version in between; the client follows `next` and nothing else."""
    engine = FakeExecutor()

    async def scene(agent: Agent) -> None:
        refused = await agent("write_kernel_code", op="softmax", source=SOURCE.format("v1"))
        assert refused.is_error
        assert refused.value["state"] == "start"
        assert refused.value["next"] == ['get_torch_op_info(op="softmax")']
        assert "get_torch_op_info" in refused.value["allowed"]
        shown = await agent("get_torch_op_info", op="softmax")
        assert shown.value["next"] == ['write_kernel_code(op="softmax", version="v1")']

        await agent("write_kernel_code", source=SOURCE.format("v1"))
        failing(engine, "v1")
        wrong = await agent("validate_correctness")
        assert (wrong.value["ok"], wrong.value["status"]) == (False, "failed")
        assert wrong.value["next"] == ['write_kernel_code(op="softmax", version="v1")']
        early = await agent("benchmark_kernel")
        assert early.value["error"] == "IllegalStep"

        for version in ("v1", "v2", "v3"):
            written = await agent("write_kernel_code", source=SOURCE.format(f"right {version}"))
            assert written.value["figures"]["version"].startswith(version)
            right = await agent("validate_correctness")
            assert right.value["ok"] is True
            assert right.value["next"] == ['benchmark_kernel(op="softmax")']
            timed = await agent("benchmark_kernel")
        assert timed.value["figures"]["v1_speedup"] > 1
        assert timed.value["next"] == ['get_best_kernel(op="softmax")']
        best = await agent("get_best_kernel")
        assert best.value["figures"]["final_us"] == 15.0
        assert "def triton_softmax" in best.text

    play(tmp_path, engine, scene, mode=mode)


def failing(engine: FakeExecutor, text: str) -> None:
    """Make the next validation fail."""
    run = engine.run

    def fail(job, **more):
        if hasattr(job, "version") and not hasattr(job, "target"):
            engine.verdicts[job.version.sha256] = Status.FAILED
            engine.run = run
        return run(job, **more)

    engine.run = fail


@pytest.mark.parametrize("mode", ERAS)
def test_the_list_of_tools_is_short_and_complete(tmp_path: Path, mode: str) -> None:
    async def scene(agent: Agent) -> None:
        tools = (await agent.client.list_tools()).tools
        wire = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]
        size = len(json.dumps({"tools": wire}, ensure_ascii=False, separators=(",", ":")))
        assert size < 16_000
        arrays = [each for tool in wire for each in tool["inputSchema"]["properties"].values()]
        assert all("items" in each for each in arrays if each.get("type") == "array")
        hints = {tool["name"]: tool["annotations"] for tool in wire}
        assert hints["get_triton_syntax"]["readOnlyHint"] is True
        assert hints["validate_correctness"]["destructiveHint"] is False

    play(tmp_path, FakeExecutor(), scene, mode=mode)


def test_a_state_names_the_next_calls_and_no_verb(tmp_path: Path) -> None:
    async def scene(agent: Agent) -> None:
        await agent("get_torch_op_info", op="softmax")
        first = await agent("get_current_status", op="softmax")
        assert first.value["next"] == ['write_kernel_code(op="softmax", version="v1")']
        await agent("write_kernel_code", source=SOURCE.format("v1"))
        second = await agent("get_current_status", op="softmax")
        names = [call.partition("(")[0] for call in second.value["next"]]
        assert names[0] == "validate_correctness"
        assert len(names) == 3
        assert set(names) <= {tool.name for tool in (await agent.client.list_tools()).tools}
        assert "allowed now" not in first.text + second.text

    play(tmp_path, FakeExecutor(), scene)


def test_a_turn_of_edit_validate_bench_is_under_3000_tokens(tmp_path: Path) -> None:
    async def scene(agent: Agent) -> None:
        await agent("get_torch_op_info", op="softmax")
        answers = [
            await agent("write_kernel_code", source=SOURCE.format("v1")),
            await agent("validate_correctness"),
            await agent("benchmark_kernel"),
        ]
        n_chars = sum(len(json.dumps(each.value, ensure_ascii=False)) for each in answers)
        assert n_chars / 3 < 3_000

    play(tmp_path, FakeExecutor(), scene)


def test_two_sessions_work_on_ops_of_their_own(tmp_path: Path) -> None:
    async def both() -> None:
        with running(tmp_path, FakeExecutor()) as service:
            server = make_server(lambda: service)
            async with connected(server) as ann, connected(server, "legacy") as ben:
                await ann("get_torch_op_info", op="softmax")
                await ben("get_torch_op_info", op="relu")
                for number in range(3):
                    async with anyio.create_task_group() as tasks:
                        for agent, op in ((ann, "softmax"), (ben, "relu")):
                            source = SOURCE.replace("softmax", op).format(number)
                            tasks.start_soon(one_version, agent, source)
                states = [service.lab.op_state(op) for op in ("softmax", "relu")]
                assert [state.state for state in states] == ["end", "end"]
                assert [len(state.versions) for state in states] == [3, 3]

    async def one_version(agent: Agent, source: str) -> None:
        for tool in ("write_kernel_code", "validate_correctness", "benchmark_kernel"):
            answer = await agent(tool, **({"source": source} if "write" in tool else {}))
            assert answer.value["ok"] is True, answer.text

    anyio.run(both)


def test_a_long_call_answers_with_a_job_that_can_be_waited_for(tmp_path: Path) -> None:
    engine = FakeExecutor()

    async def scene(agent: Agent) -> None:
        await agent("get_torch_op_info", op="softmax")
        await agent("write_kernel_code", source=SOURCE.format("v1"))
        gate = Gate(engine)
        running = await agent("validate_correctness", wait_s=0)
        assert running.value["ok"] is None
        job = running.value["job"]
        assert running.value["next"] == [f'get_job_status(job_id="{job}")']
        again = await agent("validate_correctness", seed=None, wait_s=0)
        assert again.value["job"] == job  # a repeated call starts no second job
        stats = await agent("get_server_stats")
        assert job in stats.text
        gate.open()
        ended = await agent("get_job_status", job_id=job)
        assert (ended.value["ok"], ended.value["status"]) == (True, "passed")
        assert "RIGHT" in ended.text

    play(tmp_path, engine, scene)


def test_progress_is_sent_while_a_job_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_waiting, "HEARTBEAT_S", 0.01)
    engine = FakeExecutor()

    async def scene(agent: Agent) -> None:
        await agent("get_torch_op_info", op="softmax")
        await agent("write_kernel_code", source=SOURCE.format("v1"))
        Gate(engine)
        answer = await agent("validate_correctness", wait_s=0.2)
        assert answer.value["job"]
        assert len(answer.progress) >= 2
        assert answer.progress[-1].startswith("validate softmax v1: ")
        cancelled = await agent("get_job_status", job_id=answer.value["job"], cancel=True)
        assert cancelled.value["status"] in ("cancelled", "interrupted")

    play(tmp_path, engine, scene)


@pytest.mark.parametrize("mode", ERAS)
def test_a_call_that_the_client_gives_up_ends_its_job(tmp_path: Path, mode: str) -> None:
    engine = FakeExecutor()

    async def scene(agent: Agent) -> None:
        await agent("get_torch_op_info", op="softmax")
        await agent("write_kernel_code", source=SOURCE.format("v1"))
        gate = Gate(engine)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: agent("validate_correctness"))
            await anyio.to_thread.run_sync(gate.entered.wait, 30)
            tasks.cancel_scope.cancel()
        done = await agent("run_triton_kernel")  # the next job runs, so the device is free
        assert done.value["ok"] is True
        assert engine.cancelled == 1

    play(tmp_path, engine, scene, mode=mode)


def test_a_whole_value_is_read_at_its_uri(tmp_path: Path) -> None:
    async def scene(agent: Agent) -> None:
        await agent("get_torch_op_info", op="softmax")
        await agent("write_kernel_code", source=SOURCE.format("v1"))
        answer = await agent("validate_correctness")
        page = await agent.client.read_resource(answer.value["uri"])
        value = json.loads(page.contents[0].text)
        assert value["kind"] == "validation"
        assert len(value["cases"]) == answer.value["figures"]["cases_run"] == 9

    play(tmp_path, FakeExecutor(), scene)


def test_resources_and_the_prompt_are_listed_and_read(tmp_path: Path) -> None:
    async def scene(agent: Agent) -> None:
        await agent("get_torch_op_info", op="softmax")
        await agent("write_kernel_code", source=SOURCE.format("v1"))
        (tmp_path / "logs" / "softmax_log.md").write_text("# softmax\n")
        client = agent.client
        listed = [str(page.uri) for page in (await client.list_resources()).resources]
        assert {"triton://ops", "triton://ops/softmax", "triton://logs/softmax"} <= set(listed)
        for uri in (*listed, "triton://ops/softmax/v1", "triton://knowledge/tiling"):
            assert (await client.read_resource(uri)).contents[0].text
        templates = (await client.list_resource_templates()).resource_templates
        assert "triton://results/{id}" in [each.uri_template for each in templates]
        prompt = await client.get_prompt("develop_kernel", {"op": "softmax"})
        assert "three failed" in prompt.messages[0].content.text

    play(tmp_path, FakeExecutor(), scene)


@pytest.mark.parametrize(
    "uri",
    ["triton://ops/../../etc/passwd", "triton://logs/..%2F..%2Fpasswd", "triton://results/none",
     "file:///etc/passwd", "triton://ops/softmax/v9"],
)  # fmt: skip
def test_a_resource_that_is_not_there_is_refused(tmp_path: Path, uri: str) -> None:
    async def scene(agent: Agent) -> None:
        with pytest.raises(MCPError, match=r"no |unknown|None|there is|not|can't"):
            await agent.client.read_resource(uri)

    play(tmp_path, FakeExecutor(), scene)


def test_every_fault_of_a_call_is_named_at_once(tmp_path: Path) -> None:
    async def scene(agent: Agent) -> None:
        await agent("get_torch_op_info", op="softmax")
        await agent("write_kernel_code", source=SOURCE.format("v1"))
        answer = await agent("benchmark_kernel", runs=0, timer="sundial", budget=-1)
        assert answer.is_error
        assert answer.value["error"] == "BadValue"
        for name in ("runs=0", "unknown timer 'sundial'", "budget=-1"):
            assert name in answer.value["message"]
        answer = await agent("validate_correctness", version="v7", dtypes=["float31"], seed=-1)
        for name in ("has no dtype 'float31'", "seed=-1", "v7"):
            assert name in answer.value["message"]
        answer = await agent("validate_correctness", version="v7", dtypes=["float31"])
        assert answer.value["message"].count("; ") == 1
        answer = await agent("benchmark_kernel", op="softmx", runs=0)
        for name in ("unknown op 'softmx'. Did you mean 'softmax'?", "runs=0"):
            assert name in answer.value["message"]
        answer = await agent("benchmark_kernel", op="softmx")
        assert answer.value["error"] == "UnknownOp"
        answer = await agent("benchmark_kernel", op="softmx", runz=5, x=1, runs=0, wait_s="long")
        for name in (
            "'runz'. Did you mean 'runs'?",
            "'x'",
            "op 'softmx'",
            "runs=0",
            "wait_s='long'",
        ):
            assert name in answer.value["message"]

    play(tmp_path, FakeExecutor(), scene)


def test_a_source_that_is_too_large_is_refused(tmp_path: Path) -> None:
    async def scene(agent: Agent) -> None:
        await agent("get_torch_op_info", op="softmax")
        for tool in ("write_kernel_code", "set_kernel_name"):
            answer = await agent(tool, op="softmax", source="#" * (512 * 2**10 + 1))
            assert answer.is_error
            assert "a source may have 524288 bytes" in answer.value["message"]

    play(tmp_path, FakeExecutor(), scene)


@pytest.mark.parametrize(
    ("tool", "arguments", "error"),
    [
        ("validate_correctness", {}, "op is missing"),
        ("set_kernel_name", {"op": "sofmax"}, "softmax"),
        ("get_job_status", {"job_id": "none"}, "no job 'none'"),
        ("validate_correctness", {"op": "softmax", "wait_s": "long"}, "wait_s='long'"),
        ("nope", {}, "no tool 'nope'"),
    ],
)
def test_a_call_that_cant_be_is_refused(
    tmp_path: Path, tool: str, arguments: dict[str, object], error: str
) -> None:
    async def scene(agent: Agent) -> None:
        answer = await agent(tool, **arguments)
        assert answer.is_error
        assert error in answer.value["message"]
        assert answer.text.startswith(answer.value["error"])

    play(tmp_path, FakeExecutor(), scene)


def test_an_error_of_ours_has_a_number_and_no_traceback(tmp_path: Path) -> None:
    engine = FakeExecutor()

    async def scene(agent: Agent) -> None:
        await agent("get_torch_op_info", op="softmax")
        engine.run = lambda job, **_: 1 / 0
        answer = await agent("write_kernel_code", source=SOURCE.format("v1"))
        assert answer.is_error
        assert answer.value["message"].startswith("internal error e_")
        assert "Traceback" not in answer.text

    play(tmp_path, engine, scene)


def test_an_op_of_ones_own_is_defined_and_chosen(tmp_path: Path) -> None:
    reference = (
        "import torch\n\n\ndef make_inputs(shape, dtype, device, generator):\n"
        "    return (torch.randn(shape, dtype=dtype, device=device, generator=generator),)\n\n\n"
        "def reference(x):\n    return 2 * x\n"
    )

    async def scene(agent: Agent) -> None:
        unknown = await agent("set_kernel_name", op="twice")
        assert "give its source" in unknown.value["message"]
        defined = await agent("set_kernel_name", op="twice", source=reference)
        assert defined.value["next"] == ['write_kernel_code(op="twice", version="v1")']
        source = SOURCE.replace("softmax", "twice").format("v1")
        assert (await agent("write_kernel_code", source=source)).value["ok"] is True

    play(tmp_path, FakeExecutor(), scene)


def test_a_full_context_writes_the_summary_once(tmp_path: Path) -> None:
    async def scene(agent: Agent) -> None:
        first = await agent("get_torch_op_info", op="softmax")
        assert "summarization" not in first.text
        second = await agent("get_overview")
        assert "docs/summarization.md was written" in second.text
        assert (tmp_path / "docs" / "summarization.md").is_file()
        third = await agent("get_current_status")
        assert "was written" not in third.text
        usage = await agent("check_context_usage")
        assert usage.value["figures"]["band_pct"] == 90

    play(tmp_path, FakeExecutor(), scene, context_limit=1_000)


CONTRACT = {
    "args": [
        {"name": "x", "type": "tensor", "role": "input",
         "tensor_spec": {"shape": [64], "dtype": "float32", "init": {"kind": "randn", "seed": 1}}},
    ],
}  # fmt: skip


def test_kernels_of_a_call_are_judged_outside_the_workspace(tmp_path: Path) -> None:
    async def scene(agent: Agent) -> None:
        missing = await agent("evaluate_kernel", kernel_source="x = 1", kernel_type="triton")
        assert missing.value["error"] == "BadRequest"
        assert missing.value["message"].startswith("io_contract: a triton kernel needs")
        empty = await agent("evaluate_kernel")
        assert empty.value["message"] == "kernel_source is missing; kernel_type is missing"
        both = await agent(
            "compare_kernels", ref_kernel_source="x", ref_kernel_type="triton",
            custom_kernel_source="x", custom_kernel_type="triton",
        )  # fmt: skip
        assert both.value["message"].count("needs the contract") == 1
        contract = {"args": [{**CONTRACT["args"][0], "role": "inpt"}]}
        faulty = await agent(
            "evaluate_kernel", kernel_type="tritan", num_trials=0, io_contract=contract, speed=1
        )
        for words in (
            "no argument 'speed'", "kernel_source is missing", "unknown kernel_type 'tritan'",
            "num_trials: 0 is not allowed, only a number from 1",
            "io_contract.args[0].role: 'inpt' is not allowed",
            ", only 'input', 'output', 'inout'",
        ):  # fmt: skip
            assert faulty.value["message"].count(words) == 1, words
        source = "def run(x):\n    return 2 * x\n"
        reference = (
            "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n"
            "        return 2 * x\n\n\ndef get_inputs():\n    return [torch.randn(64)]\n\n\n"
            "def get_init_inputs():\n    return []\n"
        )
        for tool, more in (
            ("validate_kernel", {"kernel_source": source, "kernel_type": "multi_kernel"}),
            ("evaluate_kernel", {"kernel_source": source, "kernel_type": "multi_kernel",
                                 "reference_kernel_source": reference}),
            ("compare_kernels", {"custom_kernel_source": source,
                                 "custom_kernel_type": "multi_kernel",
                                 "ref_kernel_source": reference, "ref_kernel_type": "torch"}),
        ):  # fmt: skip
            answer = await agent(
                tool, io_contract=CONTRACT, metadata={"entry_point": "run"}, **more
            )
            assert answer.value["figures"]["compiled"] == "true", answer.text
            assert answer.value["uri"].startswith("triton://results/")
        assert not (tmp_path / "kernels").exists()

    play(tmp_path, FakeExecutor(), scene)
