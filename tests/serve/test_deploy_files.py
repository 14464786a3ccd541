"""The files of `deploy/`: each parses, and what they name exists. No image is built here."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.fake_executor import FakeExecutor
from tests.serve.serve_kit import TOKENS
from tests.serve.test_mcp_http import served
from triton_magics.serve import command

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
INSTRUCTIONS = {
    "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL", "RUN",
    "USER", "VOLUME", "WORKDIR",
}  # fmt: skip
STAGES = ("runtime", "tools")


def stages() -> dict[str, list[tuple[str, str]]]:
    """Return the instructions of each stage of the Dockerfile."""
    text = (DEPLOY / "Dockerfile").read_text()
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    by_stage: dict[str, list[tuple[str, str]]] = {}
    for line in re.sub(r"\\\n", " ", lines).splitlines():
        if not line.strip():
            continue
        word, _, rest = line.partition(" ")
        assert word in INSTRUCTIONS, line
        if word == "FROM":
            name = rest.partition(" AS ")[2]
            by_stage[name] = []
        by_stage[name].append((word, " ".join(rest.split())))
    return by_stage


def check_command(words: list[str]) -> None:
    """Check that a command line of the server is one."""
    assert words[0] == "serve"
    parser = argparse.ArgumentParser(exit_on_error=False)
    command.add_arguments(parser)
    options = command.read_options(parser.parse_args(words[1:]))
    assert (options.host, options.port) == ("0.0.0.0", 8000)
    assert options.token_file  # an open server asks for a token


def test_the_image_runs_the_server_as_a_user_of_its_own() -> None:
    by_stage = stages()
    assert list(by_stage)[-1] == "runtime"  # what is built without --target
    for name in STAGES:
        last = dict(by_stage[name])
        words = json.loads(last["CMD"])
        check_command(words)  # Nsight Compute can't observe a version in a sandbox
        assert parse_options(words[1:]).sandbox == ("off" if name == "tools" else None)
        assert json.loads(last["ENTRYPOINT"]) == ["triton-magics"]
        assert last["USER"] == "10001"
        assert "HEALTHCHECK" in last
        copied = [rest.split() for word, rest in by_stage[name] if word == "COPY"]
        assert [words[-2] for words in copied] == ["deploy/ready.py"]
        assert copied[0][-1] == "/usr/local/bin/triton-magics-ready"
        healthcheck = last["HEALTHCHECK"].partition("CMD ")[2]
        assert json.loads(healthcheck) == ["triton-magics-ready", "--alive"]


def test_the_build_context_has_what_the_image_copies() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    sent = [line[1:] for line in ignored if line.startswith("!")]
    copied = [rest for words in stages().values() for word, rest in words if word == "COPY"]
    sources = {
        source
        for rest in copied
        for source in [w for w in rest.split() if not w.startswith("--")][:-1]
    }
    assert sources == set(sent)
    assert all((ROOT / source).exists() for source in sources)
    installs = [rest for n in STAGES for word, rest in stages()[n] if "pip install" in rest]
    assert len(installs) == len(STAGES)
    assert all("--constraint /wheels/constraints.txt " in rest for rest in installs)
    extras = re.findall(r"\[([a-z,]+)\]\"", (DEPLOY / "Dockerfile").read_text())
    project = (ROOT / "pyproject.toml").read_text()
    for extra in ",".join(extras).split(","):
        assert re.search(rf"^{extra} = \[", project, re.M), extra


def test_compose_builds_stages_that_are_there_and_confines_them() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    for service in compose["services"].values():
        assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
        assert service["build"]["target"] in stages()
        assert service["ports"] == ["127.0.0.1:8000:8000"]
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert {volume.partition(":")[0] for volume in service["volumes"]} == set(
            compose["volumes"]
        )
        assert "cap_add" not in service  # a user that is not root would not have it


def manifests() -> dict[str, Any]:
    documents = yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())
    return {document["kind"]: document for document in documents}


def test_the_pod_is_confined_and_its_parts_fit() -> None:
    kinds = manifests()
    pod = kinds["Deployment"]["spec"]["template"]
    spec = pod["spec"]
    (server,) = spec["containers"]
    check_command(server["args"])
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["runAsUser"] == 10001
    names = {volume["name"] for volume in spec["volumes"]}
    for container in (*spec["initContainers"], server):
        context = container["securityContext"]
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert {mount["name"] for mount in container["volumeMounts"]} <= names
    labels = pod["metadata"]["labels"]
    assert kinds["Deployment"]["spec"]["selector"]["matchLabels"] == labels
    assert kinds["Service"]["spec"]["selector"] == labels
    assert kinds["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"] == labels
    assert kinds["NetworkPolicy"]["spec"]["egress"] == []
    claim = next(v for v in spec["volumes"] if "persistentVolumeClaim" in v)
    name = claim["persistentVolumeClaim"]["claimName"]
    assert name == kinds["PersistentVolumeClaim"]["metadata"]["name"]
    assert server["readinessProbe"]["exec"]["command"] == ["triton-magics-ready"]
    options = command.read_options(parse_options([]))
    assert spec["terminationGracePeriodSeconds"] > options.drain_s + command.ANSWER_S


def parse_options(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(words)


def test_the_constraints_allow_the_cuda_build_of_torch() -> None:
    """From torch 2.13.0's wheel, and that of cuda-toolkit 13.0.3, which it names."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    required = {
        "torch": "2.13.0",
        "triton": "3.7.1",
        "nvidia-cuda-nvrtc": "13.0.88",
        "nvidia-cuda-runtime": "13.0.96",
    }
    assert {name: pins[name] for name in required} == required
    assert pins["cuda-bindings"].split(".")[0] == "13"
    others = {"nvidia-cuda-cccl": "13.0.85", "nvidia-cuda-crt": "13.0.88"}
    assert {n: v for n, v in pins.items() if n.startswith("nvidia-cuda-")} == {
        **others, **{n: v for n, v in required.items() if n.startswith("nvidia-cuda-")}
    }  # fmt: skip


def test_the_probe_asks_a_real_server(tmp_path: Path) -> None:
    read = re.findall(r'environ.get\("(\w+)"', (DEPLOY / "ready.py").read_text())
    assert read == ["READY_URL", "XDG_CONFIG_HOME"]  # the server refuses unknown TRITON_MAGICS_*
    folder = tmp_path / "config" / "triton-magics"
    folder.mkdir(parents=True)
    file = folder / "tokens"

    def probe(address: str, *words: str) -> int:
        environment = {"READY_URL": address, "XDG_CONFIG_HOME": str(tmp_path / "config")}
        line = [sys.executable, str(DEPLOY / "ready.py"), *words]
        return subprocess.run(line, env=environment, capture_output=True, check=False).returncode

    engine = FakeExecutor()
    with served(tmp_path / "w", engine) as url:
        file.write_text(f"ann {TOKENS['ann']}\n")
        assert [probe(url), probe(url, "--alive")] == [1, 0]  # no worker is warm
        engine.standby_ready = True
        assert probe(url) == 0
        file.write_text("ann wrong\n")
        assert probe(url) == 1
    assert probe("http://127.0.0.1:9", "--alive") == 1
