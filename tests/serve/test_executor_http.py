"""A notebook whose jobs run on a server: same values, lost connections, interrupts, refusals."""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import socket
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
import uvicorn
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.execution_kit import wait_until
from tests.fake_executor import FakeExecutor
from tests.serve.serve_kit import TOKENS, Gate, ServerProcess, bearer
from triton_magics.config import Settings
from triton_magics.errors import BadValue, Interrupted, ServerLost, Unavailable
from triton_magics.execution import registry
from triton_magics.execution.http_channel import check_address, read_token
from triton_magics.execution.protocol import Progress
from triton_magics.execution.remote_executor import RemoteExecutor
from triton_magics.lab import Lab
from triton_magics.serve import executor_sessions
from triton_magics.serve.app import create_app
from triton_magics.serve.job_service import JobService
from triton_magics.serve.options import ServeOptions
from triton_magics.serve.tokens import Tokens

TEXT = "a\u2028b: c\x85d"  # str.splitlines ends a line at each of these
SOURCE = "import triton\n\n\ndef triton_softmax(x):\n    return x  # {}\n"


@dataclass
class Relay:
    """A network between client and server, whose connections can be cut."""

    port: int
    target: int
    sockets: list[socket.socket] = field(default_factory=list)
    threads: list[threading.Thread] = field(default_factory=list)

    def serve(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                ours, _ = listener.accept()
                self.sockets.append(ours)
                try:
                    theirs = socket.create_connection(("127.0.0.1", self.target))
                except OSError:
                    ours.shutdown(socket.SHUT_RDWR)
                    continue
                self.sockets.append(theirs)
                for pair in ((ours, theirs), (theirs, ours)):
                    self.threads.append(threading.Thread(target=self._copy, args=pair))
                    self.threads[-1].start()

    def _copy(self, one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                other.sendall(data)
        for each in (one, other):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        for each in tuple(self.sockets):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.cut()
        for thread in self.threads:
            thread.join()
        for each in self.sockets:
            each.close()


@dataclass
class Box:
    """A server with a scripted executor, and the settings of a notebook that uses it."""

    service: JobService
    engine: FakeExecutor
    relay: Relay
    settings: Settings

    def http(self) -> httpx.Client:
        url = f"http://127.0.0.1:{self.relay.target}"
        return httpx.Client(base_url=url, headers=bearer())

    def executor(self) -> RemoteExecutor:
        executor = registry.create(self.settings)
        assert isinstance(executor, RemoteExecutor)
        return executor


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Box]:
    engine = FakeExecutor()
    lab = Lab(tmp_path / "server", executor=engine, settings=Settings())
    service = JobService(lab, ServeOptions(max_body_bytes=100_000))
    app = create_app(service, Tokens(TOKENS))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None))
    thread = threading.Thread(target=server.run)
    thread.start()
    wait_until(lambda: server.started, 20.0)
    token_file = tmp_path / "token"
    token_file.write_text(f"ann {TOKENS['ann']}\n")
    token_file.chmod(0o600)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        relay = Relay(listener.getsockname()[1], server.servers[0].sockets[0].getsockname()[1])
        accepting = threading.Thread(target=relay.serve, args=(listener,))
        accepting.start()
        url = f"http://127.0.0.1:{relay.port}"
        yield Box(service, engine, relay, Settings(engine=url, token_file=str(token_file)))
        listener.shutdown(socket.SHUT_RDWR)
        accepting.join()
        relay.close()
    server.should_exit = True
    thread.join()
    service.close()


@pytest.fixture
def lab(box: Box, tmp_path: Path) -> Iterator[Lab]:
    with Lab(tmp_path / "here", executor=box.executor(), settings=box.settings) as lab:
        lab.op("softmax")
        lab.kernel("softmax", "v1", SOURCE)
        yield lab


def test_values_are_those_of_a_local_executor(box: Box, lab: Lab, tmp_path: Path) -> None:
    steps: list[str] = []
    output: list[str] = []
    lab.on_progress = lambda step: steps.append(step.stage)
    lab.on_output = output.append
    box.engine.prints = TEXT
    with Lab(tmp_path / "local", executor=FakeExecutor(), settings=Settings()) as local:
        local.kernel("softmax", "v1", SOURCE)
        remote = [lab.validate("softmax", "v1", seed=1), lab.bench("softmax", seed=1)]
        same = [local.validate("softmax", "v1", seed=1), local.bench("softmax", seed=1)]
    assert [v.model_dump_json() for v in remote] == [v.model_dump_json() for v in same]
    assert output == [TEXT, TEXT]
    assert (tmp_path / "here" / "kernels" / "softmax" / "v1_baseline.py").is_file()
    assert not list((tmp_path / "server").rglob("v1*"))
    assert lab.engine_state().device.startswith("a fake of 127.0.0.1:")


def test_a_job_goes_on_while_the_connection_is_lost(box: Box, lab: Lab) -> None:
    gate = Gate(box.engine)
    box.engine.steps = (Progress(nonce="", stage="a case", done=1, total=2),)
    n_jobs = len(box.engine.jobs)
    steps: list[str] = []
    lab.on_progress = lambda step: steps.append(step.stage)

    def cut() -> None:
        gate.entered.wait(30)
        box.relay.cut()
        gate.open()

    threading.Thread(target=cut, daemon=True).start()
    assert lab.validate("softmax", "v1").passed
    box_name = f"127.0.0.1:{box.relay.port}"
    assert steps[0] == f"connecting to {box_name} again"
    assert sorted(steps[1:]) == ["a case", f"connected to {box_name} again"]
    assert len(box.engine.jobs) == n_jobs + 1
    assert box.engine.cancelled == 0


def test_an_interrupt_ends_the_job_with_or_without_connection(box: Box, lab: Lab) -> None:
    gate = Gate(box.engine)
    threading.Thread(target=lambda: gate.entered.wait(30) and lab.cancel(), daemon=True).start()
    with pytest.raises(Interrupted):
        lab.validate("softmax", "v1")
    assert box.engine.cancelled == 1
    gate = Gate(box.engine)

    def cut_and_cancel() -> None:
        gate.entered.wait(30)
        box.relay.target = 9  # nobody listens there
        box.relay.cut()
        lab.cancel()

    threading.Thread(target=cut_and_cancel, daemon=True).start()
    with pytest.raises(Interrupted) as caught:
        lab.validate("softmax", "v1")
    assert "did not answer" in str(caught.value.value.message)
    gate.open()


def test_a_session_that_is_gone_ends_its_jobs(box: Box, lab: Lab) -> None:
    gate = Gate(box.engine)
    refusals: list[tuple[int, str, int]] = []

    def forget() -> None:
        gate.entered.wait(30)
        connection = lab.session.jobs.executor._connection  # type: ignore[attr-defined]
        session = connection.stream._path
        with box.http() as requests:
            wrong = requests.get(f"{executor_sessions.PATH}/0000/frames")
            stranger = requests.get(f"{session}/frames", headers=bearer("ben"))
            refusals.append((wrong.status_code, wrong.json()["error"], stranger.status_code))
            requests.delete(session).raise_for_status()

    threading.Thread(target=forget, daemon=True).start()
    words = f"connection to 127.0.0.1:{box.relay.port} was lost: the server ended the session"
    with pytest.raises(ServerLost, match=words):
        lab.validate("softmax", "v1")
    assert refusals == [(404, "UnknownJob", 404)]
    wait_until(lambda: box.engine.cancelled == 1)
    gate.open()
    assert lab.validate("softmax", "v1").passed  # a new session


def test_another_version_is_refused_and_both_are_named(box: Box) -> None:
    box.service.version = "9.9"
    executor = box.executor()
    own = sys.modules["triton_magics"].__version__
    with pytest.raises(Unavailable, match=rf"has triton_magics 9\.9, this is {own}"):
        executor.devices()
    executor.close()


def test_a_wrong_token_and_an_address_without_a_server_are_named(box: Box, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("x" * 32)
    wrong.chmod(0o600)
    for settings, words in (
        (Settings(engine=box.settings.engine, token_file=str(wrong)), "none of this server"),
        (Settings(engine="http://127.0.0.1:9", token_file=str(wrong)), "refused"),
    ):
        executor = registry.create(settings)
        with pytest.raises(Unavailable, match=words):
            executor.devices()
        executor.close()


def test_a_job_that_the_server_refuses_ends_with_its_reason(box: Box, lab: Lab) -> None:
    lab.kernel("softmax", "v2", SOURCE + f"# {'x' * 100_000}\n", compile=False)
    with pytest.raises(BadValue, match="100000 bytes"):
        lab.validate("softmax", "v2")
    box.service.drain()
    with pytest.raises(Unavailable, match="stopping"):
        lab.validate("softmax", "v1")


def test_a_session_ends_with_its_notebook(box: Box, lab: Lab) -> None:
    lab.validate("softmax", "v1")
    path = lab.session.jobs.executor._connection.stream._path  # type: ignore[attr-defined]
    lab.close()
    with box.http() as requests:
        wait_until(lambda: requests.get(f"{path}/frames").status_code == 404)


def test_sessions_are_limited_and_a_body_must_be_a_frame(box: Box) -> None:
    hello = {"type": "hello", "version": "1"}
    with box.http() as requests:
        bad = requests.post(executor_sessions.PATH, json={"type": "no such"})
        assert bad.status_code == 422
        hello["version"] = box.service.version
        codes = [requests.post(executor_sessions.PATH, json=hello).status_code for _ in range(17)]
    assert codes == [200] * executor_sessions.MAX_SESSIONS + [429]


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://box:8000", "clear text"),
        ("https://box/path", "write ssh://HOST"),
        ("https://me@box", "write ssh://HOST"),
        ("https://", "write ssh://HOST"),
        ("https://box:99999", "write ssh://HOST"),
        ("ftp://box", "write ssh://HOST"),
    ],
)
def test_an_address_that_is_none_is_refused(url: str, words: str) -> None:
    with pytest.raises(BadValue, match=words):
        registry.create(Settings(engine=url))


def test_a_token_comes_from_a_private_file_or_the_environment(tmp_path: Path) -> None:
    assert check_address("https://box:8000/") == "https://box:8000"
    file = tmp_path / "token"
    file.write_text("# the box\nann secret\n")
    file.chmod(0o600)
    environment = {"TRITON_MAGICS_TOKEN": " other\n", "XDG_CONFIG_HOME": str(tmp_path)}
    assert read_token(str(file), environment) == "secret"
    assert read_token("", environment) == "other"
    del environment["TRITON_MAGICS_TOKEN"]
    assert read_token("", environment) == ""
    file.chmod(0o644)
    with pytest.raises(BadValue, match="chmod 600"):
        read_token(str(file), environment)
    with pytest.raises(BadValue, match="can't be read"):
        read_token(str(tmp_path / "none"), environment)


def write_certificate(folder: Path) -> tuple[Path, Path]:
    """Write a certificate of 127.0.0.1 that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "box")])
    now = datetime.datetime.now(datetime.UTC)
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name)
        .public_key(key.public_key()).serial_number(1).add_extension(names, critical=False)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    paths = folder / "cert.pem", folder / "key.pem"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    paths[1].write_bytes(key.private_bytes(pem, pkcs8, serialization.NoEncryption()))
    return paths


@pytest.mark.slow
def test_a_real_server_judges_a_notebooks_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "server").mkdir()
    cert, key = write_certificate(tmp_path)
    server = ServerProcess(tmp_path / "server", "--tls-cert", str(cert), "--tls-key", str(key))
    monkeypatch.setenv("TRITON_MAGICS_TOKEN", server.headers["Authorization"].split()[1])
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))
    settings = Settings(engine=f"https://127.0.0.1:{server.port}")
    try:
        with Lab(tmp_path / "here", settings=settings) as lab:
            lab.op("softmax")
            source = "import torch\n\n\ndef triton_softmax(x):\n    return torch.softmax(x, -1)\n"
            lab.kernel("softmax", "v1", source)
            assert lab.validate("softmax", "v1", plan="quick").status == "failed"
            assert not list((tmp_path / "server" / "kernels").rglob("v1*"))
    finally:
        server.close()
