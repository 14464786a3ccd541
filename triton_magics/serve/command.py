"""The commands `triton-magics serve` and `triton-magics mcp`."""

from __future__ import annotations

import argparse
import errno
import ipaddress
import logging
import os
import re
import socket
import ssl
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

from triton_magics.config import read_settings
from triton_magics.errors import BadValue, TritonMagicsError, Unavailable
from triton_magics.execution.local import machine_checks
from triton_magics.execution.local.machine import Machine
from triton_magics.serve.options import ServeOptions

NEEDED = ("fastapi", "mcp", "uvicorn")
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
ANSWER_S = 5.0  # after the last job was ended, for the answers to those who wait for it
_MIB = 2**20
_ORIGIN = re.compile(r"https?://[^/?#@\s]+")


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the options of `serve`."""
    add = command.add_argument
    add("--host", default="127.0.0.1", help="address to listen at: 127.0.0.1")
    add("--port", type=int, default=8000, help="8000; 0 chooses a free one")
    add("--unix-socket", metavar="PATH", help="listen at a socket of this user, at no port")
    modes = ("both", "fastapi", "mcp")
    add("--mode", choices=modes, default="both", help="REST (fastapi), MCP, or both: both")
    add("--workspace", metavar="DIR", help="folder of kernels/ and logs/; default: the current one")
    add("--gpus", default="all", metavar="LIST", help="all, or indices and UUIDs: 0,1")
    add(
        "--log-level",
        type=str.upper,
        choices=LEVELS,
        default=None,
        help="INFO, or that of LOG_LEVEL",
    )
    add("--cache-dir", metavar="DIR", help="folder of compiled kernels")
    add("--queue", type=int, default=100, metavar="N", help="jobs that may wait: 100")
    add("--token-file", metavar="FILE", help="a name and a token a line; made if it is missing")
    add("--tls-cert", metavar="FILE", help="certificate (PEM); then the server speaks HTTPS")
    add("--tls-key", metavar="FILE", help="its key (PEM)")
    add("--no-auth", action="store_true", help="ask for no token; on 127.0.0.1 only")
    add(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="further name of this host",
    )
    add("--allow-origin", action="append", default=[], metavar="URL", help="page that may call")
    add("--max-body-mib", type=float, default=2.0, metavar="N", help="largest request: 2")
    add(
        "--sandbox",
        nargs="?",
        const="on",
        choices=("on", "auto", "off"),
        help="run no version outside a sandbox: on, with Landlock; off for device metrics",
    )
    add("--reload", action="store_true", help="start again when a file of the package changes")


def add_stdio_arguments(command: argparse.ArgumentParser) -> None:
    """Add the options of `mcp`."""
    command.add_argument("--workspace", metavar="DIR", help="folder of kernels/ and logs/")
    command.add_argument(
        "--context-limit", type=int, metavar="N", default=128_000,
        help="tokens of the model's context: 128000",
    )  # fmt: skip


def serve(words: argparse.Namespace) -> int:
    """Serve until SIGTERM or Ctrl-C; return the exit code.

    Raises:
        BadValue, Unavailable: an option is not allowed, or a package is missing.
    """
    _require()
    options = read_options(words)
    if words.reload:
        return _serve_again_and_again(words)
    _set_environment(words)
    tokens_path = options.token_file
    from triton_magics.lab import Lab
    from triton_magics.serve import json_logs, tokens

    json_logs.configure(words.log_level or _level_of_environment())
    if tokens_path and tokens.create_file(tokens_path):
        print(f"made a token: {tokens_path}", file=sys.stderr)
    accepted = tokens.read_file(tokens_path) if tokens_path else None
    with _listen(options) as listener:
        lab = Lab(words.workspace)
        kinds = [device.kind for device in lab.jobs.executor.devices()]
        _check_gpus(words.gpus, kinds.count("gpu"))
        return _run(lab, options, accepted, listener)


def read_options(words: argparse.Namespace) -> ServeOptions:
    """Return the options of a line.

    Raises:
        BadValue: names every value that is not allowed.
    """
    from triton_magics.serve import tokens

    token_file = Path(words.token_file) if words.token_file else tokens.default_path()
    options = ServeOptions(
        host=words.host,
        port=words.port,
        unix_socket=Path(words.unix_socket) if words.unix_socket else None,
        mode=words.mode,
        allowed_hosts=tuple(name.lower() for name in words.allow_host),
        allowed_origins=tuple(words.allow_origin),
        max_body_bytes=int(words.max_body_mib * _MIB),
        n_waiting=words.queue,
        token_file=None if words.no_auth else token_file,
        tls_cert=Path(words.tls_cert) if words.tls_cert else None,
        tls_key=Path(words.tls_key) if words.tls_key else None,
    )
    faults = [
        *([] if 0 <= words.port < 2**16 else [f"--port {words.port}: write 0 to 65535"]),
        *([] if words.queue > 0 else [f"--queue {words.queue}: write a number from 1"]),
        *([] if 0 < words.max_body_mib <= 64 else ["--max-body-mib: write 0 to 64"]),
    ]
    if words.no_auth and not options.is_loopback:
        faults.append(f"--no-auth with --host {words.host}: anyone there could run code here")
    if words.no_auth and words.token_file:
        faults.append("--no-auth with --token-file: choose one")
    faults += [
        f"--allow-host {name}: write a name or an address, without scheme and port"
        for name in options.allowed_hosts
        if "/" in name or (":" in name and not _is_ipv6(name))
    ]
    faults += [
        f"--allow-origin {url}: write scheme and host, such as https://box.example:8443"
        for url in options.allowed_origins
        if not _ORIGIN.fullmatch(url)
    ]
    faults += _tls_faults(options)
    if faults:
        raise BadValue("; ".join(faults))
    return options


def _is_ipv6(text: str) -> bool:
    try:
        return ipaddress.ip_address(text).version == 6
    except ValueError:
        return False


def _tls_faults(options: ServeOptions) -> list[str]:
    """Return why the certificate can't be used."""
    if not options.tls_cert and not options.tls_key:
        return []
    if not (options.tls_cert and options.tls_key):
        return ["--tls-cert and --tls-key: give both"]
    try:
        ssl.create_default_context().load_cert_chain(options.tls_cert, options.tls_key)
    except (OSError, ssl.SSLError) as error:
        return [f"--tls-cert {options.tls_cert}: {error.strerror or error}"]
    return []


def _set_environment(words: argparse.Namespace) -> None:
    """Pass GPUs and cache on to the workers, which inherit the environment."""
    if words.gpus != "all":
        os.environ["CUDA_VISIBLE_DEVICES"] = words.gpus
    if words.cache_dir:
        os.environ["TRITON_MAGICS_CACHE"] = str(_writable_folder("--cache-dir", words.cache_dir))
    if sandbox := words.sandbox or default_sandbox(words.workspace, Machine()):
        os.environ["TRITON_MAGICS_SANDBOX"] = sandbox
    if os.environ.get("GPU_TYPE"):
        print("GPU_TYPE is ignored: the driver names the GPU", file=sys.stderr)


def _writable_folder(option: str, name: str) -> Path:
    """Return a folder's absolute path; create it if it is missing.

    Raises:
        BadValue: it can't be created or written.
    """
    path = Path(name).expanduser().resolve()
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadValue(f"{option} {name}: {error.strerror or error}") from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise BadValue(f"{option} {name}: this user can't write there")
    return path


def default_sandbox(workspace: str | None, machine: Machine) -> str | None:
    """Return `on` where the sandbox works; None where it does not, or the user has set it."""
    if "sandbox" in read_settings(workspace):
        return None
    return "on" if machine.landlock_abi() > 0 else None


def sandbox_line(machine: Machine) -> str:
    """Return how far the sandbox of this server's versions goes, and what is missing.

    Args:
        machine: with the setting `sandbox`.
    """
    checked = machine_checks.sandbox(machine)
    goes = "off, so versions run with all rights of this user" if machine.sandbox == "off" else ""
    if machine.sandbox == "auto" and machine.has_gpu:
        goes = "off on a GPU, so versions run with all rights of this user; --sandbox on confines"
    remedy = f"; {checked.remedy}" if checked.remedy and not goes else ""
    return f"sandbox {machine.sandbox}: {goes or checked.detail}{remedy}"


def _level_of_environment() -> str:
    level = os.environ.get("LOG_LEVEL", "INFO").upper()
    return level if level in LEVELS else "INFO"


def _check_gpus(names: str, n_gpus: int) -> None:
    n_named = len(names.split(","))
    if names != "all" and n_gpus < n_named:
        raise BadValue(f"--gpus {names}: {n_gpus} of {n_named} are there")


def _listen(options: ServeOptions) -> socket.socket:
    """Return a socket that listens.

    Raises:
        BadValue: the address can't be used.
    """
    if options.unix_socket:
        return _listen_at_path(options.unix_socket)
    try:
        listener = socket.create_server(
            (options.host, options.port),
            family=socket.AF_INET6 if ":" in options.host else socket.AF_INET,
            backlog=128,
        )
        # asyncio sets it only on sockets with an explicit protocol; without it an answer in two
        # parts waits 40 ms for the client's delayed acknowledgement.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except OSError as error:
        place = f"--host {options.host} --port {options.port}"
        hint = "; choose another --port" if error.errno == errno.EADDRINUSE else ""
        raise BadValue(f"{place}: {error.strerror or error}{hint}") from error


def _listen_at_path(path: Path) -> socket.socket:
    """Return a unix socket that only this user can connect to.

    Raises:
        BadValue: the path can't be used.
    """
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        if path.is_socket():
            path.unlink()
        listener.bind(str(path))
        listener.listen(128)
        return listener
    except OSError as error:
        listener.close()
        raise BadValue(f"--unix-socket {path}: {error.strerror or error}") from error
    finally:
        os.umask(mask)


def _run(lab: Any, options: ServeOptions, tokens: Any, listener: socket.socket) -> int:
    import uvicorn

    from triton_magics.serve.app import create_app
    from triton_magics.serve.job_service import JobService
    from triton_magics.serve.web_server import MAX_CONNECTIONS, DrainingServer, PatientProtocol

    service = JobService(lab, options)
    config = uvicorn.Config(
        create_app(service, tokens),
        http=PatientProtocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # a client could choose its address in the log
        limit_concurrency=MAX_CONNECTIONS,
        timeout_graceful_shutdown=round(options.drain_s + ANSWER_S),
        ssl_certfile=options.tls_cert,
        ssl_keyfile=options.tls_key,
    )
    _announce(options, listener)
    print(sandbox_line(Machine(sandbox=lab.settings.sandbox)), file=sys.stderr, flush=True)
    try:
        DrainingServer(config, service.drain).run(sockets=[listener])
    finally:
        service.close(drain_s=options.drain_s)
    return 0


def _announce(options: ServeOptions, listener: socket.socket) -> None:
    is_path = options.unix_socket is not None
    port = None if is_path else listener.getsockname()[1]
    host = f"[{options.host}]" if ":" in options.host else options.host
    scheme = "https" if options.tls_cert else "http"
    access = f"token in {options.token_file}" if options.token_file else "no token is asked for"
    place = f"unix:{options.unix_socket}" if is_path else f"{scheme}://{host}:{port}"
    print(
        f"{place} ({options.mode}; {access}). Clients run code with the rights of this user.",
        file=sys.stderr,
        flush=True,
    )
    logging.getLogger("triton_magics.serve").info("serving", extra={"port": port})


def _serve_again_and_again(words: argparse.Namespace) -> int:
    """Serve in a child process, and start it again when a file of the package changes."""
    from uvicorn import Config
    from uvicorn.supervisors import ChangeReload

    package = Path(__file__).parents[1]
    config = Config("triton_magics.serve.app:create_app", reload=True, reload_dirs=[str(package)])
    ChangeReload(config, target=_Child(words), sockets=[]).run()
    return 0


class _Child:
    """The server in the process that the reloader starts."""

    def __init__(self, words: argparse.Namespace) -> None:
        self._words = argparse.Namespace(**{**vars(words), "reload": False})

    def __call__(self, sockets: object) -> None:
        """Serve until the reloader ends this process.

        Raises:
            SystemExit: with 2 where it can't serve; the reloader then waits for a change.
        """
        try:
            code = serve(self._words)
        except TritonMagicsError as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            code = 2
        raise SystemExit(code)


def serve_stdio(words: argparse.Namespace) -> NoReturn:
    """Serve MCP on standard input and output until EOF; then exit.

    Raises:
        BadValue, Unavailable: an option is not allowed, or a package is missing.
    """
    if words.context_limit < 1:
        raise BadValue(f"--context-limit {words.context_limit}: write a number from 1")
    _require()
    from triton_magics.lab import Lab
    from triton_magics.serve.job_service import JobService
    from triton_magics.serve.mcp_server import run_stdio

    run_stdio(lambda: JobService(Lab(words.workspace)), context_limit=words.context_limit)


def _require() -> None:
    absent = [name for name in NEEDED if find_spec(name) is None]
    if absent:
        names = ", ".join(absent)
        raise Unavailable(f"{names} not installed: pip install 'triton-magics[serve]'")
