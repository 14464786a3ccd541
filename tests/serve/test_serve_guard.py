"""The guard: token, Host, Origin, method, type and size, in that order, in front of every route."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tests.fake_executor import FakeExecutor
from tests.serve.serve_kit import TOKENS, bearer, call, opened
from triton_magics.errors import BadValue
from triton_magics.serve import tokens
from triton_magics.serve.app import create_app

GOOD = bearer()
EVIL_HOST = {"Host": "evil.example"}
EVIL_ORIGIN = {"Origin": "https://evil.example"}
TEXT = {"Content-Type": "text/plain"}
LONG = {"Content-Length": str(2**40)}
NO_TOKEN = {"Authorization": ""}
WRONG_TOKENS = ("Bearer nonsense", "Bearer", "Basic YTpi", f"Token {TOKENS['ann']}", "Bearer é")


@pytest.fixture
def engine() -> FakeExecutor:
    return FakeExecutor()


def test_the_refusals_have_their_order(tmp_path: Path, engine: FakeExecutor) -> None:
    ladder = [(NO_TOKEN, 401), (EVIL_HOST, 421), (EVIL_ORIGIN, 403), (TEXT, 415), (LONG, 413)]
    with opened(tmp_path, engine, mode="fastapi") as service:
        requests, codes = [], []
        for i, (_, code) in enumerate(ladder):
            headers = {k: v for each, _ in ladder[i:] for k, v in each.items()}
            requests.append(("POST", "/v1/status", {}, headers))
            codes.append(code)
        answers = call(service, *requests)
        assert [answer.status_code for answer in answers] == codes
        assert answers[0].headers["www-authenticate"] == 'Bearer realm="triton-magics"'


def test_every_route_refuses_strangers(tmp_path: Path, engine: FakeExecutor) -> None:
    cases = [(NO_TOKEN, 401), ({"Authorization": "Bearer nonsense"}, 401)]
    cases += [(EVIL_HOST, 421), (EVIL_ORIGIN, 403)]
    with opened(tmp_path, engine, mode="fastapi") as service:
        inner = create_app(service, None)._app
        routes = {
            (method, route.path.replace("{job_id}", "x"))
            for route in inner.routes
            for method in getattr(route, "methods", ())
        }
        assert len(routes) > 35
        for method, path in sorted({*routes, ("GET", "/"), ("POST", "/mcp")}):
            answers = call(service, *((method, path, None, headers) for headers, _ in cases))
            codes = [answer.status_code for answer in answers]
            expected = [code for _, code in cases]
            too_many = [429 if code == 401 else code for code in expected]
            assert codes in (expected, too_many), (method, path)
        assert len(engine.jobs) == 1  # the compilation of the kit


@pytest.mark.parametrize("header", WRONG_TOKENS)
def test_a_wrong_token_is_refused(tmp_path: Path, engine: FakeExecutor, header: str) -> None:
    with opened(tmp_path, engine, mode="fastapi") as service:
        wrong = {"Authorization": header.encode()}
        (answer,) = call(service, ("GET", "/health", None, wrong))
        assert answer.status_code == 401


@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS", "TRACE", "HEAD", "CONNECT"])
def test_other_methods_are_refused(tmp_path: Path, engine: FakeExecutor, method: str) -> None:
    with opened(tmp_path, engine, mode="fastapi") as service:
        (answer,) = call(service, (method, "/v1/status", None))
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET, POST, DELETE")


@pytest.mark.parametrize(
    ("host", "code"),
    [("localhost", 200), ("localhost:9", 200), ("[::1]:8000", 200), ("127.0.0.1", 200),
     ("127.0.0.1.evil.example", 421), ("0.0.0.0", 421), ("10.0.0.7", 421), ("", 421)],
)  # fmt: skip
def test_the_hosts_of_a_local_server(
    tmp_path: Path, engine: FakeExecutor, host: str, code: int
) -> None:
    with opened(tmp_path, engine, mode="fastapi") as service:
        (answer,) = call(service, ("GET", "/health", None, {"Host": host}))
        assert answer.status_code == code


def test_an_open_server_answers_to_addresses_and_its_names(
    tmp_path: Path, engine: FakeExecutor
) -> None:
    options = {"host": "0.0.0.0", "allowed_hosts": ("box",), "mode": "fastapi"}
    with opened(tmp_path, engine, **options) as service:
        hosts = ("10.0.0.7:8000", "box:8000", "other")
        answers = call(service, *(("GET", "/health", None, {"Host": host}) for host in hosts))
        assert [answer.status_code for answer in answers] == [200, 200, 421]


def test_an_allowed_origin_may_call_and_gets_no_cors_header(
    tmp_path: Path, engine: FakeExecutor
) -> None:
    with opened(tmp_path, engine, mode="fastapi", allowed_origins=("https://a.example",)) as s:
        good, null = call(
            s,
            ("GET", "/health", None, {"Origin": "https://a.example"}),
            ("GET", "/health", None, {"Origin": "null"}),
        )
        assert [good.status_code, null.status_code] == [200, 403]
        assert not [name for name in good.headers if name.startswith("access-control")]


def test_a_probe_needs_no_token_and_hears_nothing(tmp_path: Path, engine: FakeExecutor) -> None:
    with opened(tmp_path, engine, mode="fastapi") as service:
        probe, discovery = call(
            service,
            ("GET", "/healthz", None, EVIL_HOST),
            ("GET", "/.well-known/oauth-protected-resource", None),
            headers={},
        )
        assert (probe.status_code, probe.json()) == (200, {"status": "ok"})
        assert (discovery.status_code, discovery.headers["content-type"]) == (
            404,
            "application/json",
        )


def test_guessing_is_slowed_down_and_clients_are_not(tmp_path: Path, engine: FakeExecutor) -> None:
    with opened(tmp_path, engine, mode="fastapi") as service:
        wrong = ("GET", "/health", None, {"Authorization": "Bearer " + "x" * 32})
        answers = call(service, *[wrong] * 12, ("GET", "/health", None))
        codes = [answer.status_code for answer in answers]
        assert codes == [401] * 10 + [429] * 2 + [200]


# ---------------------------------------------------------------------------------------- tokens


def test_a_token_file_is_made_once_and_for_its_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "config" / "tokens"
    assert tokens.create_file(path)
    text = path.read_text()
    assert not tokens.create_file(path)
    assert path.read_text() == text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    name, token = text.split()
    assert tokens.read_file(path).client_of(token.encode()) == name
    assert tokens.read_file(path).client_of(token[:-1].encode()) is None
    assert len(token) == 43  # 256 bits


@pytest.mark.parametrize(
    ("text", "fault"),
    [("", "has no token"), ("ann short\n", "line 1"), ("a b c\n", "line 1"),
     (f"ann {'x' * 30}\nann {'y' * 30}\n", "line 2"), (f"../x {'x' * 30}\n", "line 1")],
)  # fmt: skip
def test_a_wrong_token_file_is_refused(tmp_path: Path, text: str, fault: str) -> None:
    path = tmp_path / "tokens"
    path.touch(mode=0o600)
    path.write_text(text)
    with pytest.raises(BadValue, match=fault):
        tokens.read_file(path)


def test_a_token_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    tokens.create_file(path)
    path.chmod(0o640)
    with pytest.raises(BadValue, match="chmod 600"):
        tokens.read_file(path)


def test_a_wrong_token_and_none_have_messages_of_their_own(
    tmp_path: Path, engine: FakeExecutor
) -> None:
    with opened(tmp_path, engine, mode="fastapi") as service:
        for headers, words in (
            ({}, "send the header Authorization: Bearer TOKEN"),
            ({"Authorization": "Bearer " + "x" * 32}, "its start names their file"),
        ):
            (answer,) = call(service, ("GET", "/health", None), headers=headers)
            assert answer.status_code == 401
            assert words in answer.json()["message"]
