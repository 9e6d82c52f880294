"""Logs of pods, and the proxy to their ports."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterable
from contextlib import closing
from datetime import UTC, datetime
from typing import Protocol

import httpx
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from slipway_localcluster.errors import ApiError, BadRequest, NotFound
from slipway_localcluster.kinds import POD
from slipway_localcluster.logs import LogReader, OpenLog, read_options
from slipway_localcluster.requests import Resource
from slipway_localcluster.store import Store
from slipway_localcluster.watch import Hub

_FOLLOW_SECONDS = 0.3
_PROXY_TIMEOUT = httpx.Timeout(60.0, connect=5.0)
# Pods answer plain HTTP; reading the certificate authorities took 20 ms for each request.
_NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
_HOP_HEADERS = frozenset(
    {
        "authorization",
        "connection",
        "content-length",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


class PodAccess(Protocol):
    """Access to the processes of pods."""

    def open_log(
        self,
        namespace: str,
        name: str,
        *,
        container: str | None = None,
        is_previous: bool = False,
    ) -> OpenLog: ...

    def pod_address(self, namespace: str, name: str, port: int) -> tuple[str, int]: ...


class NoPods:
    """Pod access of a cluster without controllers: nothing runs."""

    def open_log(
        self,
        namespace: str,
        name: str,
        *,
        container: str | None = None,
        is_previous: bool = False,
    ) -> OpenLog:
        raise _not_running(namespace, name)

    def pod_address(self, namespace: str, name: str, port: int) -> tuple[str, int]:
        raise _not_running(namespace, name)


def _not_running(namespace: str, name: str) -> NotFound:
    return NotFound(f"pod {namespace}/{name} has no process: the controllers are switched off")


class PodEndpoints:
    def __init__(self, store: Store, hub: Hub, access: PodAccess) -> None:
        self._store = store
        self._hub = hub
        self._access = access

    async def log(self, request: Request, resource: Resource) -> Response:
        namespace, name = str(resource.target.namespace), str(resource.target.name)
        self._store.get(POD, namespace, name)
        query = request.query_params
        options = read_options(query, pod=name, now=datetime.now(UTC))
        log = await asyncio.to_thread(
            self._access.open_log,
            namespace,
            name,
            container=query.get("container"),
            is_previous=options.is_previous,
        )
        reader = LogReader(options)
        if options.is_followed:
            followed = self._follow(request, resource, log, reader)
            return StreamingResponse(followed, media_type="text/plain")
        with closing(log):
            text = reader.next(await asyncio.to_thread(log.lines), is_last=True)
        return Response(text, media_type="text/plain")

    async def _follow(
        self,
        request: Request,
        resource: Resource,
        log: OpenLog,
        reader: LogReader,
    ) -> AsyncIterator[bytes]:
        with closing(log):
            while not (self._hub.is_closed or reader.is_full or await request.is_disconnected()):
                # Read before the log, so that the last lines of an ended pod are not lost.
                is_last = log.has_ended() or self._has_ended(resource)
                yield reader.next(await asyncio.to_thread(log.lines), is_last=is_last)
                if is_last:
                    return
                await asyncio.sleep(_FOLLOW_SECONDS)

    def _has_ended(self, resource: Resource) -> bool:
        pod = self._store.find(POD, resource.target.namespace, str(resource.target.name))
        return pod is None or (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")

    async def proxy(self, request: Request, resource: Resource) -> Response:
        """Forward `pods/NAME:PORT/proxy/PATH` with method, query, headers and body unchanged."""
        name, port = split_port(str(resource.target.name))
        namespace = str(resource.target.namespace)
        pod = self._store.get(POD, namespace, name)
        address, host_port = self._access.pod_address(namespace, name, port or _first_port(pod))
        url = f"http://{address}:{host_port}/{resource.rest}"
        headers = _end_to_end_headers(request.headers.items())
        body = await request.body()
        async with httpx.AsyncClient(timeout=_PROXY_TIMEOUT, verify=_NO_TLS) as client:
            try:
                answer = await client.request(
                    request.method, url, params=request.url.query, headers=headers, content=body
                )
            except httpx.HTTPError as error:
                raise ApiError(
                    503, "ServiceUnavailable", f"error trying to reach service: {error}"
                ) from error
        # httpx has already unpacked the body.
        kept = dict(_end_to_end_headers(answer.headers.items()))
        kept.pop("content-encoding", None)
        return Response(answer.content, answer.status_code, kept)


def split_port(name: str) -> tuple[str, int | None]:
    """Split `NAME`, `NAME:PORT` or `SCHEME:NAME:PORT`."""
    parts = name.split(":")
    if len(parts) == 1:
        return name, None
    if len(parts) == 3:
        if parts[0] not in ("", "http"):
            raise BadRequest(f"proxy: {parts[0]} is not supported, only http")
        parts = parts[1:]
    if not parts[1].isdigit():
        raise BadRequest(f"proxy: the port must be a number: {name}")
    return parts[0], int(parts[1])


def _first_port(pod: dict[str, object]) -> int:
    spec = pod.get("spec")
    containers = spec.get("containers") or [] if isinstance(spec, dict) else []
    for container in containers:
        for port in container.get("ports") or []:
            return int(port["containerPort"])
    return 80


def _end_to_end_headers(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(name, value) for name, value in headers if name.lower() not in _HOP_HEADERS]
