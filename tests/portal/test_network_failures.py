"""No message carries the text of an exception of a client library."""

from __future__ import annotations

import ast
import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

import httpx
import pytest
import requests
import urllib3
from botocore.exceptions import ClientError, EndpointConnectionError
from botocore.exceptions import ReadTimeoutError as BotoTimeout

from portal.core import network_failures

_ROOT: Final = Path(__file__).parents[2]
_LIBRARY_TEXT = re.compile(
    r"ConnectionPool|0x[0-9a-f]{6}|Errno|urllib3|<class|Traceback|Caused by|Max retries|_ssl\.c"
    r"|\b[A-Z]\w+(?:Error|Exception|Timeout)\b|object at"
)
_PORT_OF_NOBODY: Final = 9


@contextmanager
def server(talk: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that does `talk` with each connection."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        done = threading.Event()

        def serve() -> None:
            with ExitStack() as stack:
                while not done.is_set():
                    opened, _ = listening.accept()
                    with suppress(OSError):
                        talk(stack.enter_context(opened))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{listening.getsockname()[1]}"
        finally:
            done.set()
            socket.create_connection(listening.getsockname()).close()


def by_urllib3(url: str) -> object:
    return urllib3.PoolManager(retries=False, timeout=0.3).request("GET", url)


def by_urllib3_with_retries(url: str) -> object:
    return urllib3.PoolManager(retries=urllib3.Retry(1), timeout=0.3).request("GET", url)


def by_requests(url: str) -> object:
    return requests.get(url, timeout=0.3)


def by_httpx(url: str) -> object:
    return httpx.get(url, timeout=0.3, trust_env=False)


CLIENTS = [by_urllib3, by_urllib3_with_retries, by_requests, by_httpx]


def close(opened: socket.socket) -> None:
    opened.recv(100)
    with suppress(OSError):
        opened.shutdown(socket.SHUT_RDWR)


def cut(opened: socket.socket) -> None:
    opened.recv(100)
    opened.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort")
    with suppress(OSError):
        opened.shutdown(socket.SHUT_RDWR)


def say_nothing(_opened: socket.socket) -> None:
    pass


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    ("scheme", "talk", "phrase"),
    [
        ("http", None, "the connection was refused"),
        ("http", close, "the connection was closed"),
        ("http", cut, ""),
        ("http", say_nothing, "no answer in time"),
        ("https", cut, "the TLS handshake failed"),
    ],
)
def test_a_failure_on_the_way_is_a_phrase(
    client: Callable[[str], object],
    scheme: str,
    talk: Callable[[socket.socket], None] | None,
    phrase: str,
) -> None:
    with ExitStack() as stack:
        place = stack.enter_context(server(talk)) if talk else f"127.0.0.1:{_PORT_OF_NOBODY}"
        with pytest.raises(Exception) as failure:  # noqa: PT011  each library has its own
            client(f"{scheme}://{place}/")

    described = network_failures.describe(failure.value)
    assert not _LIBRARY_TEXT.search(described), described
    assert not phrase or described == phrase


OTHERS = [
    (socket.gaierror(-2, "Name or service not known"), "its name cannot be resolved"),
    (
        ClientError({"Error": {"Code": "AccessDenied", "Message": "Access Denied"}}, "GetObject"),
        "Access Denied (AccessDenied)",
    ),
    (EndpointConnectionError(endpoint_url="http://a"), "no connection"),
    (BotoTimeout(endpoint_url="http://a"), "no answer in time"),
    (
        ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version (_ssl.c:1006)"),
        "the TLS handshake failed",
    ),
    (FileNotFoundError(2, "No such file or directory"), "no such file or directory"),
    (KeyError("endpoint"), "the answer is not complete"),
    (RuntimeError("<object at 0x7f45ea599010>"), "the request failed on the way"),
]


@pytest.mark.parametrize(("error", "phrase"), OTHERS)
def test_other_errors_are_phrases_too(error: Exception, phrase: str) -> None:
    assert network_failures.describe(error) == phrase


# The text of the portal's own errors, and of what a model's file says in the sandbox.
_ALLOWED: Final = {
    "deployments/imports/gateways/mlflow_server.py",
    "deployments/registry/gateways/bucket_setup.py",
    "deployments/registry/gateways/multipart_completion.py",
    "deployments/registry/gateways/sandbox_child.py",
    "deployments/registry/gateways/scanners/task.py",
    "deployments/delivery/gateways/git.py",
    "fleet/clusters/gateways/prometheus.py",
    "fleet/kube/gateways/credentials.py",
    "fleet/kube/gateways/sigv4.py",
    "fleet/prices/gateways/aws_prices.py",
}


def _quotes_an_error(node: ast.AST) -> bool:
    """`{error}` in a text, or str(error)."""
    if isinstance(node, ast.FormattedValue):
        return isinstance(node.value, ast.Name) and node.value.id in ("error", "exc")
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("str", "repr")
        and bool(node.args)
        and isinstance(node.args[0], ast.Name)
        and node.args[0].id in ("error", "exc")
    )


def test_gateways_quote_no_exception() -> None:
    quoting = {
        path.relative_to(_ROOT).as_posix()
        for app in ("deployments", "fleet")
        for path in (_ROOT / app).glob("*/gateways/**/*.py")
        if any(_quotes_an_error(node) for node in ast.walk(ast.parse(path.read_text())))
    }

    assert quoting <= _ALLOWED
