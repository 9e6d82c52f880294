"""The API server: HTTP in, Kubernetes objects out.

Reads and writes run on the event loop itself, because each takes about a millisecond; whatever
waits (watches, followed logs, proxied requests) yields to the loop.
"""

import json
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from slipway_localcluster import (
    discovery,
    event_forms,
    evictions,
    openapi,
    options,
    reads,
    reviews,
    scale,
    watch,
)
from slipway_localcluster import requests as parsing
from slipway_localcluster.errors import (
    ApiError,
    JsonObject,
    MethodNotAllowed,
    NotFound,
    Unauthorized,
)
from slipway_localcluster.kinds import POD
from slipway_localcluster.pods import PodAccess, PodEndpoints
from slipway_localcluster.requests import Resource
from slipway_localcluster.store import Store
from slipway_localcluster.writes import WriteOptions, Writer, Written

logger = logging.getLogger(__name__)

_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
_OPEN_PATHS = frozenset({"healthz", "readyz", "livez", "version"})
_SUBRESOURCES = ("", "status")


@dataclass(frozen=True, slots=True)
class ApiParts:
    """The parts that handle a request."""

    store: Store
    hub: watch.Hub
    writer: Writer
    pods: PodEndpoints
    token: str


def build_app(store: Store, hub: watch.Hub, *, access: PodAccess, token: str) -> Starlette:
    api = ApiParts(store, hub, Writer(store), PodEndpoints(store, hub, access), token)

    async def endpoint(request: Request) -> Response:
        try:
            return await _dispatch(api, request)
        except ApiError as error:
            return _json(error.as_status(), error.status)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        hub.open()
        yield

    return Starlette(
        routes=[Route("/{path:path}", endpoint, methods=_METHODS)],
        lifespan=lifespan,
        exception_handlers={500: _internal_error},
    )


async def _internal_error(_request: Request, error: Exception) -> Response:
    """Internal errors; uvicorn logs the traceback."""
    internal = ApiError(500, "InternalError", f"Internal error occurred: {type(error).__name__}")
    return _json(internal.as_status(), internal.status)


async def _dispatch(api: ApiParts, request: Request) -> Response:
    parts = [part for part in request.url.path.split("/") if part]
    if parts and parts[0] in _OPEN_PATHS:
        return _json(discovery.VERSION) if parts[0] == "version" else PlainTextResponse("ok")
    expected = f"Bearer {api.token}".encode()
    if not secrets.compare_digest(request.headers.get("authorization", "").encode(), expected):
        raise Unauthorized
    document = _describe_server(parts)
    if document is not None:
        return _json(document)
    group, version, rest = _split(parts)
    if reviews.is_review(group, rest):
        # The result does not depend on the body, which may be protobuf.
        is_json = parsing.media_type(request.headers) == "application/json"
        body = parsing.read_body(await request.body(), "") if is_json else {}
        return _json(reviews.evaluate(rest[0], body), 201)
    resource = parsing.parse_resource(group, version, rest)
    return await _handle(api, request, resource)


def _describe_server(parts: list[str]) -> JsonObject | None:
    if not parts:
        return {"paths": ["/api", "/apis", "/healthz", "/openapi/v3", "/version"]}
    if parts[0] == "openapi":
        return _openapi(parts[1:])
    if parts[0] == "api" and len(parts) <= 2:
        return discovery.resource_list("", parts[1]) if parts[1:] else discovery.core_versions()
    if parts[0] == "apis" and len(parts) <= 3:
        return _groups(parts[1:])
    return None


def _openapi(parts: list[str]) -> JsonObject:
    if parts == ["v2"]:
        return openapi.legacy_document()
    if parts == ["v3"]:
        return openapi.index()
    return openapi.document("/".join(parts[1:]))


def _groups(parts: list[str]) -> JsonObject:
    if not parts:
        return discovery.group_list()
    if len(parts) == 1:
        return discovery.group(parts[0])
    return discovery.resource_list(parts[0], parts[1])


def _split(parts: list[str]) -> tuple[str, str, list[str]]:
    if parts[0] == "api" and len(parts) > 2:
        return "", parts[1], parts[2:]
    if parts[0] == "apis" and len(parts) > 3:
        return parts[1], parts[2], parts[3:]
    raise NotFound("the server could not find the requested resource")


async def _handle(api: ApiParts, request: Request, resource: Resource) -> Response:
    subresource = resource.target.subresource
    if resource.kind is POD and subresource == "log" and request.method == "GET":
        return await api.pods.log(request, resource)
    if resource.kind is POD and subresource == "proxy":
        return await api.pods.proxy(request, resource)
    if resource.kind is POD and subresource == "eviction":
        return await _evict(api, request, resource)
    if subresource == "finalize" and request.method == "PUT":
        resource = replace(resource, target=replace(resource.target, subresource=""))
    elif subresource == "scale" and resource.kind.has_scale:
        return await _scale(api, request, resource)
    elif subresource not in _SUBRESOURCES or (subresource and not resource.kind.has_status):
        raise NotFound("the server could not find the requested resource")
    return await _VERBS[request.method](api, request, resource)


async def _get(api: ApiParts, request: Request, resource: Resource) -> Response:
    query = request.query_params
    output = reads.output_format_of(resource, request.headers.get("accept", ""), query)
    if parsing.is_true(query.get("watch")):
        return _watch(api, request, resource, output)
    target = resource.target
    if target.name is None:
        return _json(reads.list_objects(api.store, resource, query, output))
    return _json(output.render_object(api.store.get(target.kind, target.namespace, target.name)))


def _watch(
    api: ApiParts, request: Request, resource: Resource, output: reads.OutputFormat
) -> Response:
    query = request.query_params
    seconds = query.get("timeoutSeconds", "")
    requested = watch.WatchRequest(
        kind=resource.kind,
        namespace=resource.target.namespace,
        selector=reads.selector_of(resource, query),
        resource_version=query.get("resourceVersion", ""),
        timeout_seconds=float(seconds) if seconds.isdigit() else watch.default_timeout(),
        allows_bookmarks=parsing.is_true(query.get("allowWatchBookmarks")),
        sends_initial_events=parsing.is_true(query.get("sendInitialEvents")),
        render=output.render_event,
    )
    lines = watch.stream(api.store, api.hub, requested, request.is_disconnected)
    return StreamingResponse(lines, media_type="application/json")


async def _post(api: ApiParts, request: Request, resource: Resource) -> Response:
    if resource.target.name is not None:
        raise MethodNotAllowed
    body = parsing.read_body(await request.body(), request.headers.get("content-type", ""))
    if resource.is_new_event:
        body = event_forms.to_core(body)
    created = api.writer.create(resource.target, body, _options(request))
    return _written(request, resource, created)


async def _put(api: ApiParts, request: Request, resource: Resource) -> Response:
    if resource.target.name is None:
        raise MethodNotAllowed
    body = parsing.read_body(await request.body(), request.headers.get("content-type", ""))
    if resource.is_new_event:
        body = event_forms.to_core(body)
    updated = api.writer.update(resource.target, body, _options(request))
    return _written(request, resource, updated)


async def _patch(api: ApiParts, request: Request, resource: Resource) -> Response:
    if resource.target.name is None:
        raise MethodNotAllowed
    raw = await request.body()
    written = api.writer.patch(
        resource.target, raw, parsing.media_type(request.headers), _options(request)
    )
    return _written(request, resource, written)


async def _delete(api: ApiParts, request: Request, resource: Resource) -> Response:
    body = parsing.read_body(await request.body(), request.headers.get("content-type", ""))
    deletion = options.delete_options(_options(request), body)
    target = resource.target
    if target.name is not None:
        return _json(_deletion(api, resource, api.writer.delete(target, deletion)))
    selector = reads.selector_of(resource, request.query_params)
    deleted = [
        item for item in api.store.list(target.kind, target.namespace) if selector.matches(item)
    ]
    for item in deleted:
        metadata = item["metadata"]
        named = replace(target, namespace=metadata.get("namespace"), name=metadata["name"])
        api.writer.delete(named, deletion)
    output = reads.output_format_of(resource, "", request.query_params)
    return _json(output.render_list(deleted, {"resourceVersion": str(api.store.revision)}))


def _deletion(api: ApiParts, resource: Resource, deleted: JsonObject) -> JsonObject:
    """Return the object while it exists, else a Status that names the deleted one."""
    target, metadata = resource.target, deleted["metadata"]
    if api.store.find(target.kind, target.namespace, str(target.name)) is not None:
        return deleted
    details = {
        "name": metadata["name"],
        "group": target.kind.group,
        "kind": target.kind.plural,
        "uid": metadata["uid"],
    }
    status: JsonObject = {"kind": "Status", "apiVersion": "v1", "metadata": {}}
    return status | {"status": "Success", "details": details}


async def _scale(api: ApiParts, request: Request, resource: Resource) -> Response:
    target = replace(resource.target, subresource="")
    live = api.store.get(target.kind, target.namespace, str(target.name))
    if request.method == "GET":
        return _json(scale.scale_of(live))
    body = parsing.read_body(await request.body(), "application/json")
    if request.method == "PATCH":
        body = scale.patched_scale(live, body, parsing.media_type(request.headers))
    elif request.method != "PUT":
        raise MethodNotAllowed
    scaled = scale.with_scale(live, body)
    return _json(scale.scale_of(api.writer.update(target, scaled, _options(request)).obj))


async def _evict(api: ApiParts, request: Request, resource: Resource) -> Response:
    if request.method != "POST":
        raise MethodNotAllowed
    body = parsing.read_body(await request.body(), request.headers.get("content-type", ""))
    deletion = options.delete_options(_options(request), body.get("deleteOptions") or {})
    return _json(evictions.evict(api.store, api.writer, resource.target, deletion), 201)


_Verb = Callable[[ApiParts, Request, Resource], Awaitable[Response]]
_VERBS: dict[str, _Verb] = {
    "GET": _get,
    "HEAD": _get,
    "POST": _post,
    "PUT": _put,
    "PATCH": _patch,
    "DELETE": _delete,
}


def _options(request: Request) -> WriteOptions:
    return options.write_options(request.query_params, request.headers, method=request.method)


def _written(request: Request, resource: Resource, written: Written) -> Response:
    output = reads.output_format_of(
        resource, request.headers.get("accept", ""), request.query_params
    )
    answer = _json(output.render_object(written.obj), 201 if written.is_new else 200)
    for warning in written.warnings:
        text = warning.replace("\\", "\\\\").replace('"', '\\"')
        answer.headers.append("Warning", f'299 - "{text}"')
    return answer


def _json(body: JsonObject, status: int = 200) -> Response:
    content = json.dumps(body, separators=(",", ":")).encode()
    return Response(content, status, media_type="application/json")
