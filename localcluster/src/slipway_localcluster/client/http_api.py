"""`ClusterApi` over HTTP, for any Kubernetes API server."""

import json
import logging
import threading
from collections.abc import Collection, Mapping
from http import HTTPStatus
from typing import Any

import httpx

from slipway_localcluster.client.cluster_api import Objects
from slipway_localcluster.client.kubeconfig import Connection
from slipway_localcluster.client.watch_cache import WatchCache
from slipway_localcluster.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Gone,
    JsonObject,
    NotFound,
)
from slipway_localcluster.kinds import Kind

logger = logging.getLogger(__name__)

_TIMEOUT = httpx.Timeout(10.0, connect=5.0)
_WATCH_SECONDS = 240
_WATCH_TIMEOUT = httpx.Timeout(_WATCH_SECONDS + 10.0, connect=5.0)
_RETRY_SECONDS = 1.0
_THROTTLED_RETRIES = 10
_ERRORS: Mapping[str, type[NotFound | AlreadyExists | Conflict | Gone]] = {
    "NotFound": NotFound,
    "AlreadyExists": AlreadyExists,
    "Conflict": Conflict,
    "Expired": Gone,
}


class HttpClusterApi:
    """Reads watched kinds from a cache that one watch per kind updates, other kinds from the server."""

    def __init__(self, connection: Connection, watched: Collection[Kind]) -> None:
        self._server = connection.server
        headers = {"Accept": "application/json", "User-Agent": "slipway-agents"}
        if connection.token:
            headers["Authorization"] = f"Bearer {connection.token}"
        self._client = httpx.Client(
            base_url=connection.server, headers=headers, verify=connection.tls, timeout=_TIMEOUT
        )
        self._watched = tuple(watched)
        self._cache = WatchCache(watched)
        self._closed = threading.Event()

    def start(self) -> None:
        """Load the cache, then watch on daemon threads; raises ApiError."""
        for kind in self._watched:
            version = self._load(kind)
            thread = threading.Thread(
                target=self._follow, args=(kind, version), name=f"watch-{kind.plural}", daemon=True
            )
            thread.start()

    def close(self) -> None:
        """End every watch with its next event."""
        self._closed.set()

    @property
    def revision(self) -> int:
        return self._cache.revision

    def wait(self, revision: int, timeout: float) -> int:
        return self._cache.wait(revision, timeout)

    def list(self, kind: Kind, namespace: str | None = None) -> Objects:
        if kind in self._cache:
            return self._cache.list(kind, namespace)
        return self._list(kind, namespace)[0]

    def find(self, kind: Kind, namespace: str | None, name: str) -> JsonObject | None:
        if kind in self._cache:
            return self._cache.find(kind, namespace, name)
        try:
            return self._send("GET", path_of(kind, namespace, name))
        except NotFound:
            return None

    def create(self, kind: Kind, obj: JsonObject) -> JsonObject:
        path = path_of(kind, obj["metadata"].get("namespace"))
        return self._write("POST", path, kind, obj)

    def replace(self, kind: Kind, obj: JsonObject) -> JsonObject:
        return self._write("PUT", _path_of_object(kind, obj), kind, obj)

    def replace_status(self, kind: Kind, obj: JsonObject) -> JsonObject:
        return self._write("PUT", f"{_path_of_object(kind, obj)}/status", kind, obj)

    def delete(
        self,
        kind: Kind,
        namespace: str | None,
        name: str,
        *,
        uid: str | None = None,
        grace_period_seconds: int | None = None,
    ) -> JsonObject:
        options: JsonObject = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        if grace_period_seconds is not None:
            options["gracePeriodSeconds"] = grace_period_seconds
        return self._send("DELETE", path_of(kind, namespace, name), options)

    def _write(self, method: str, path: str, kind: Kind, obj: JsonObject) -> JsonObject:
        written = self._send(method, path, _typed(kind, obj))
        if kind in self._cache:
            self._cache.put(kind, written)
        return written

    def _list(self, kind: Kind, namespace: str | None) -> tuple[Objects, str]:
        listed = self._send("GET", path_of(kind, namespace))
        # Items of a list carry no type of their own.
        objects = [_typed(kind, item) for item in listed.get("items") or ()]
        return objects, str(listed["metadata"]["resourceVersion"])

    def _load(self, kind: Kind) -> str:
        objects, version = self._list(kind, None)
        self._cache.replace_all(kind, objects)
        return version

    def _follow(self, kind: Kind, version: str) -> None:
        while not self._closed.is_set():
            try:
                version = self._watch(kind, version)
            except (ApiError, httpx.HTTPError, ValueError) as error:
                logger.info("the watch of %s ended: %s", kind.plural, error)
                self._closed.wait(_RETRY_SECONDS)
                version = self._reload(kind, version)

    def _reload(self, kind: Kind, version: str) -> str:
        try:
            return self._load(kind)
        except ApiError as error:
            logger.warning("%s cannot be listed: %s", kind.plural, error.message)
            return version

    def _watch(self, kind: Kind, version: str) -> str:
        """Apply events until the server ends the watch; return the last resourceVersion."""
        query = {
            "watch": "true",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(_WATCH_SECONDS),
        }
        path = path_of(kind, None)
        with self._client.stream("GET", path, params=query, timeout=_WATCH_TIMEOUT) as response:
            if response.is_error:
                response.read()
                raise _error_of(response)
            for line in response.iter_lines():
                event = json.loads(line)
                version = self._apply(kind, event["type"], event["object"])
                if self._closed.is_set():
                    break
        return version

    def _apply(self, kind: Kind, change: str, obj: JsonObject) -> str:
        if change == "ERROR":
            raise _api_error(obj, int(obj.get("code", 500)), "the watch failed")
        if change == "DELETED":
            self._cache.remove(kind, obj)
        elif change != "BOOKMARK":
            self._cache.put(kind, _typed(kind, obj))
        return str(obj["metadata"]["resourceVersion"])

    def _send(self, method: str, path: str, body: JsonObject | None = None) -> JsonObject:
        try:
            response = self._request(method, path, body)
        except httpx.HTTPError as error:
            raise ApiError(
                503, "ServiceUnavailable", f"{method} {self._server}{path}: {error}"
            ) from error
        if response.is_error:
            raise _error_of(response)
        answer: JsonObject = response.json()
        return answer

    def _request(self, method: str, path: str, body: JsonObject | None) -> httpx.Response:
        """Send a request, and retry while the server is throttling or loads a new resource definition."""
        response = self._client.request(method, path, json=body)
        for _ in range(_THROTTLED_RETRIES):
            if response.status_code != HTTPStatus.TOO_MANY_REQUESTS:
                break
            self._closed.wait(_RETRY_SECONDS)
            response = self._client.request(method, path, json=body)
        return response


def path_of(kind: Kind, namespace: str | None, name: str = "") -> str:
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    scope = f"/namespaces/{namespace}" if kind.namespaced and namespace else ""
    return f"{root}{scope}/{kind.plural}" + (f"/{name}" if name else "")


def _path_of_object(kind: Kind, obj: JsonObject) -> str:
    return path_of(kind, obj["metadata"].get("namespace"), obj["metadata"]["name"])


def _typed(kind: Kind, obj: JsonObject) -> JsonObject:
    return {"apiVersion": kind.api_version, "kind": kind.kind} | obj


def _error_of(response: httpx.Response) -> ApiError:
    try:
        status = response.json()
    except ValueError:
        # An API group that the server does not know is answered by plain text.
        status = {"reason": "NotFound"} if response.status_code == HTTPStatus.NOT_FOUND else {}
    return _api_error(status, response.status_code, f"HTTP {response.status_code}")


def _api_error(status: Any, code: int, default: str) -> ApiError:
    known = status if isinstance(status, dict) else {}
    reason = str(known.get("reason") or "Unknown")
    message = str(known.get("message") or default)
    kind = _ERRORS.get(reason)
    return ApiError(code, reason, message) if kind is None else kind(message)
