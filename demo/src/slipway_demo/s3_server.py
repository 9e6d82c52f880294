"""The demo's object store: moto's S3 on 127.0.0.1, kept in files (see s3_store).

It checks no signatures. It answers a change only after the change is on disk.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import io
import os
import signal
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

# The bucket's own CORS rules decide, as on S3; moto would else allow every origin.
os.environ["MOTO_DISABLE_GLOBAL_CORS"] = "true"

from moto.moto_server.werkzeug_app import MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

from slipway_demo.s3_store import Store

WsgiApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
_CHANGING = frozenset({"PUT", "POST", "DELETE"})
_M_MMAP_THRESHOLD = -3  # malloc.h
_LARGE_BYTES = 1 << 20
_HEALTH_PATH = "/_health"


class KeepingApp:
    """WSGI: passes on to moto; what a successful request changed is kept before the answer leaves."""

    def __init__(self, app: WsgiApp, store: Store) -> None:
        self._app = app
        self._store = store

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        path = unquote(str(environ.get("PATH_INFO", "")).encode("latin-1").decode())
        if path == _HEALTH_PATH:
            start_response("204 No Content", [])
            return [b""]
        if environ["REQUEST_METHOD"] not in _CHANGING:
            return self._app(environ, start_response)
        return self._change(path, environ, start_response)

    def _change(
        self, path: str, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        answer: list[Any] = []

        def remember(status: str, headers: list[tuple[str, str]], *_: Any) -> None:
            answer[:] = [status, headers]

        sent = _read_at_once(environ)
        body = list(self._app(environ, remember))
        _forget(sent)
        if not answer[0].startswith("2") or "partNumber=" in environ.get("QUERY_STRING", ""):
            self._store.sweep()
        else:
            bucket, _, key = path.removeprefix("/").partition("/")
            self._store.keep(bucket, key or None)
        start_response(*answer)
        return body


def _read_at_once(environ: dict[str, Any]) -> io.BytesIO:
    """Read the body as one piece: werkzeug would join it from small ones, copying it twice."""
    body = io.BytesIO()
    if length := int(environ.get("CONTENT_LENGTH") or 0):
        body = io.BytesIO(environ["wsgi.input"].read(length))
        environ["wsgi.input"] = body
        environ["wsgi.input_terminated"] = True
    return body


def _forget(sent: io.BytesIO) -> None:
    """Requests of Flask and moto name each other in circles: parts would stay until a collection."""
    is_large = len(sent.getbuffer()) > _LARGE_BYTES
    sent.close()
    if is_large:
        gc.collect()


def _return_large_buffers() -> None:
    """Give memory of freed parts back at once: glibc else keeps that of many parts in many arenas."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)


class QuietHandler(MotoRequestHandler):  # type: ignore[misc]  # moto is untyped
    def log_request(self, code: Any = "-", size: Any = "-") -> None:
        """Log nothing: a presigned URL is a secret while it lives."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m slipway_demo.s3_server")
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args()

    _return_large_buffers()
    store = Store(options.data_dir)
    store.load()
    app = KeepingApp(create_backend_app("s3"), store)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    server = make_server(
        "127.0.0.1", options.port, app, threaded=True, request_handler=QuietHandler
    )
    # What was imported is not looked through by each collection.
    gc.freeze()
    server.serve_forever()


if __name__ == "__main__":
    main()
