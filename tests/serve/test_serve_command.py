"""The options of `triton-magics serve`, and what it refuses before it listens."""

from __future__ import annotations

import argparse
import json
import logging
import os
import socket
from pathlib import Path

import pytest

from triton_magics import cli
from triton_magics.config import Settings
from triton_magics.errors import BadValue
from triton_magics.execution.local.machine import Machine
from triton_magics.serve import command, json_logs
from triton_magics.serve.options import ServeOptions


def read(*words: str) -> ServeOptions:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return command.read_options(parser.parse_args(words))


def test_the_defaults_are_local_and_ask_for_a_token() -> None:
    options = read()
    assert (options.host, options.port, options.mode) == ("127.0.0.1", 8000, "both")
    assert options.token_file is not None
    assert (options.max_body_bytes, options.n_waiting) == (2 * 2**20, 100)
    assert read("--no-auth").token_file is None


def test_an_open_server_without_a_token_is_refused() -> None:
    with pytest.raises(BadValue) as error:
        read("--host", "0.0.0.0", "--no-auth", "--port", "99999", "--queue", "0")
    for part in ("--no-auth with --host 0.0.0.0", "--port 99999", "--queue 0"):
        assert part in str(error.value)


def test_a_certificate_needs_its_key_and_must_be_one(tmp_path: Path) -> None:
    file = tmp_path / "cert.pem"
    file.write_text("nothing")
    with pytest.raises(BadValue, match="give both"):
        read("--tls-cert", str(file))
    for path in (file, tmp_path / "none"):
        with pytest.raises(BadValue, match=f"--tls-cert {path}: "):
            read("--tls-cert", str(path), "--tls-key", str(path))


def test_a_port_in_use_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        words = ["serve", "--port", port, "--token-file", str(tmp_path / "t")]
        assert cli.main([*words, "--workspace", str(tmp_path)]) == 2
    assert "Address already in use (" in (error := capsys.readouterr().err)
    assert error.endswith("; choose another --port\n")
    assert not (tmp_path / ".triton_magics").exists()


def test_reload_refuses_before_it_watches_files(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert cli.main(["serve", "--reload", "--port", "99999", "--queue", "0"]) == 2
    error = capsys.readouterr().err
    assert error == "BadValue: --port 99999: write 0 to 65535; --queue 0: write a number from 1\n"
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    words = parser.parse_args(["--token-file", str(tmp_path), "--port", "0"])
    with pytest.raises(SystemExit, match="2"):  # in the child: a line, no traceback
        command._Child(words)(None)
    assert capsys.readouterr().err.count("\n") == 1


def test_an_answer_in_two_parts_does_not_wait() -> None:
    with command._listen(read("--port", "0")) as listener:
        assert listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0


def test_gpus_and_cache_go_to_the_workers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    monkeypatch.setenv("TRITON_MAGICS_CACHE", "before")
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    monkeypatch.setenv("TRITON_MAGICS_SANDBOX", "auto")
    words = ["--gpus", "0,1", "--cache-dir", str(tmp_path), "--sandbox"]
    command._set_environment(parser.parse_args(words))
    assert Settings.load(tmp_path).sandbox == "on"
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "0,1"
    assert os.environ["TRITON_MAGICS_CACHE"] == str(tmp_path)
    for names, n_gpus, words in (("0,1", 1, ["1 of 2"]), ("GPU-x", 0, ["--gpus GPU-x", "0 of 1"])):
        with pytest.raises(BadValue) as error:
            command._check_gpus(names, n_gpus)
        assert all(part in str(error.value) for part in words)
    command._check_gpus("all", 0)


def test_a_cache_that_cant_be_written_is_refused_at_once(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    words = ["serve", "--port", "0", "--token-file", str(tmp_path / "t")]
    assert cli.main([*words, "--cache-dir", str(tmp_path / "file" / "cache")]) == 2
    assert "cache: Not a directory" in capsys.readouterr().err


def test_a_named_gpu_is_not_replaced_by_the_interpreter(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    words = ["serve", "--port", "0", "--token-file", str(tmp_path / "t"), "--gpus", "no-gpu"]
    assert cli.main([*words, "--workspace", str(tmp_path / "w")]) == 2
    assert "--gpus no-gpu: 0 of 1 are there" in capsys.readouterr().err


def test_names_of_hosts_and_pages_are_checked() -> None:
    right = ("box", "10.0.0.7", "fd00::7"), ("https://box", "http://box.example:8443")
    options = read(
        *(f"--allow-host={n}" for n in right[0]), *(f"--allow-origin={o}" for o in right[1])
    )
    assert (options.allowed_hosts, options.allowed_origins) == right
    wrong = ("http://box", "box:8000"), ("box", "https://box/page", "*")
    with pytest.raises(BadValue) as error:
        read(*(f"--allow-host={n}" for n in wrong[0]), *(f"--allow-origin={o}" for o in wrong[1]))
    assert str(error.value).count("--allow-host") == 2
    assert str(error.value).count("--allow-origin") == 3


def test_a_context_without_tokens_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["mcp", "--context-limit", "0"]) == 2
    assert "--context-limit 0: write a number from 1" in capsys.readouterr().err


def test_a_server_confines_versions_where_it_can(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("TRITON_MAGICS_SANDBOX", raising=False)
    places = {True: tmp_path / "gpu", False: tmp_path / "cpu"}
    (places[True] / "dev").mkdir(parents=True)
    (places[True] / "dev" / "nvidia0").touch()
    for abi, has_gpu, default in (
        (7, False, "on"),
        (0, False, None),
        (7, True, "on"),
        (0, True, None),
    ):
        machine = Machine(root=places[has_gpu], env={}, landlock_abi=lambda abi=abi: abi)
        assert machine.has_gpu is has_gpu
        assert command.default_sandbox(str(tmp_path), machine) == default
    monkeypatch.setenv("TRITON_MAGICS_SANDBOX", "off")
    free = Machine(root=tmp_path / "cpu", env={}, landlock_abi=lambda: 7)
    assert command.default_sandbox(str(tmp_path), free) is None


@pytest.mark.parametrize(
    ("setting", "abi", "words"),
    [
        ("on", 7, "files, network, signals"),
        ("on", 3, "can send signals to your other processes; use Linux 6.12"),
        ("auto", 0, "no Landlock: versions run with all your rights; use Linux 5.13"),
        ("off", 7, "off, so versions run with all rights"),
    ],
)
def test_the_server_says_what_its_sandbox_lacks(
    setting: str, abi: int, words: str, tmp_path: Path
) -> None:
    machine = Machine(root=tmp_path, env={}, sandbox=setting, landlock_abi=lambda: abi)
    line = command.sandbox_line(machine)
    assert line.startswith(f"sandbox {setting}: ")
    assert words in line


def test_a_line_of_the_log_is_json_with_its_facts() -> None:
    record = logging.LogRecord("triton_magics.serve", 20, "", 0, "a\nb %s", ("c",), None)
    record.job = "x" * 5_000
    line = json_logs.JsonFormatter().format(record)
    assert "\n" not in line
    assert json.loads(line)["message"] == "a\nb c"
    assert len(json.loads(line)["job"]) == json_logs.MAX_CHARS
