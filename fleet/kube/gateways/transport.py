"""HTTP to one Kubernetes API server: pooled connections, a timeout on every call, our own errors."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

import urllib3
from kubernetes.client import ApiClient
from kubernetes.config import ConfigException
from urllib3.exceptions import ClosedPoolError, ProtocolError, ReadTimeoutError

from fleet.kube.domain import errors
from fleet.kube.domain.connection import Connection
from fleet.kube.domain.pod_proxy import MOST_ANSWER_BYTES, PodRequest, PodResponse
from fleet.kube.domain.warnings import parse_warnings
from fleet.kube.gateways.connection_probe import ProbeStep, probe_connection
from fleet.kube.gateways.credentials import read_access
from fleet.kube.gateways.status_errors import build_error, is_status
from portal.core import counters, network_failures

Query = Sequence[tuple[str, str]]

CONNECT_SECONDS = 3.0
READ_SECONDS = 15.0
_COUNTED: Final[Mapping[type[errors.ClusterError], str]] = {
    errors.Unreachable: "unreachable",
    errors.Refused: "refused",
    errors.Throttled: "throttled",
}
_POD_PROXY: Final = "/proxy/"
_CHUNK_BYTES: Final = 64 * 1024
# A page that drips in may take so many times as long as one read.
_WHOLE_PAGE: Final = 4


class Transport:
    def __init__(self, connection: Connection) -> None:
        self.name = connection.name
        access = read_access(connection)
        self._configuration, self._renew = access.configuration, access.renew
        self._pool: urllib3.PoolManager = ApiClient(self._configuration).rest_client.pool_manager

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        body: object = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        read_seconds: float = READ_SECONDS,
        on_warning: Callable[[str], None] | None = None,
        most_bytes: int | None = None,
    ) -> bytes:
        """Everything sent here is idempotent, so a kept-alive connection that the server closed
        meanwhile is tried once more on a new one, and expired credentials with new ones.
        `on_warning` is called with each warning of a request that succeeds. An answer of more than `most_bytes`
        is a ClusterError, and no more than that is read of it.
        """
        data = None if body is None else json.dumps(body).encode()
        headers = {"Accept": accept} | ({"Content-Type": content_type} if data else {})
        for _ in range(2):
            auth = self._auth()
            response = self._exchange(
                *(method, path, query, data, headers | auth, read_seconds),
                preload_content=most_bytes is None,
            )
            if response.status != 401 or not self._is_renewed(auth):
                break
        content = (
            response.data
            if most_bytes is None
            else self._read_at_most(response, most_bytes, read_seconds)
        )
        if response.status >= 300:
            after = response.headers.get("Retry-After")
            raise self._counted(build_error(response.status, content, after), path)
        if on_warning is not None:
            for text in parse_warnings(response.headers.getlist("Warning")):
                on_warning(text)
        return content

    def _read_at_most(
        self, response: urllib3.BaseHTTPResponse, most_bytes: int, read_seconds: float
    ) -> bytes:
        """Read a pod's response within `most_bytes` and a time limit, which nothing else bounds."""
        content = bytearray()
        deadline = time.monotonic() + _WHOLE_PAGE * read_seconds
        try:
            while part := response.read1(_CHUNK_BYTES, decode_content=True):
                content += part
                _check_page(len(content), most_bytes=most_bytes, deadline=deadline)
        except urllib3.exceptions.HTTPError as error:
            response.close()
            raise self._unreachable(error) from error
        except errors.ClusterError:
            # What was not read must not reach the next request of this connection.
            response.close()
            raise
        finally:
            response.release_conn()
        return bytes(content)

    def proxy_request(self, call: PodRequest) -> PodResponse:
        """The pod answers, with any status. A refusal of the API server itself comes as a Status
        object and is raised as our error.
        """
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        headers |= {"Content-Type": "application/json"} if call.body is not None else {}
        headers |= call.headers
        headers |= self._auth()
        response = self._exchange(
            call.method, call.api_path, (), call.body, headers, call.seconds, preload_content=False
        )
        try:
            content = response.read(MOST_ANSWER_BYTES + 1)
        except urllib3.exceptions.HTTPError as error:
            raise self._unreachable(error) from error
        finally:
            response.close()
            response.release_conn()
        if response.status >= 300 and is_status(content):
            raise build_error(response.status, content, response.headers.get("Retry-After"))
        is_cut = len(content) > MOST_ANSWER_BYTES
        return PodResponse(response.status, content[:MOST_ANSWER_BYTES], is_cut)

    def _exchange(
        self,
        method: str,
        path: str,
        query: Query,
        data: bytes | None,
        headers: dict[str, str],
        read_seconds: float,
        *,
        preload_content: bool = True,
    ) -> urllib3.BaseHTTPResponse:
        for is_last in (False, True):
            try:
                return self._send(
                    method,
                    path,
                    query,
                    data,
                    headers,
                    read_seconds,
                    preload_content=preload_content,
                )
            except (ProtocolError, ClosedPoolError) as error:
                if is_last:
                    raise self._counted(self._unreachable(error), path) from error
            except urllib3.exceptions.HTTPError as error:
                raise self._counted(self._unreachable(error), path) from error
        raise AssertionError("the last attempt returns or raises")

    def json(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        content = self.request(method, path, **options)
        try:
            parsed: dict[str, Any] = json.loads(content)
        except ValueError as error:
            raise errors.Unreachable(
                f"Cluster {self.name} answered {path} with something that is not JSON."
            ) from error
        return parsed

    def lines(self, path: str, *, query: Query, idle_seconds: float) -> Iterator[bytes]:
        """Yield the lines as they arrive, until the server ends the response. Raises Unreachable without data."""
        auth = self._auth()
        headers = {"Accept": "application/json"} | auth
        try:
            response = self._send(
                "GET", path, query, None, headers, idle_seconds, preload_content=False
            )
        except urllib3.exceptions.HTTPError as error:
            raise self._counted(self._unreachable(error), path) from error
        try:
            if response.status == 401:
                # A watch is restarted by its caller.
                self._is_renewed(auth)
            if response.status >= 300:
                content = response.read(decode_content=True)
                after = response.headers.get("Retry-After")
                raise self._counted(build_error(response.status, content, after), path)
            yield from _split_lines(response)
        except ReadTimeoutError as error:
            # A stream that stalled without an error most likely lost the idle connections too.
            self._pool.clear()
            raise self._unreachable(error) from error
        except urllib3.exceptions.HTTPError as error:
            raise self._unreachable(error) from error
        finally:
            response.close()
            response.release_conn()

    def probe_connection(self) -> list[ProbeStep]:
        """Probe the way to the server, step by step, on a connection of its own."""
        settings = self._configuration
        return probe_connection(
            settings.host,
            ca_file=settings.ssl_ca_cert,
            is_verified=settings.verify_ssl,
            proxy=settings.proxy or "",
        )

    def close(self) -> None:
        self._pool.clear()

    def _send(
        self,
        method: str,
        path: str,
        query: Query,
        data: bytes | None,
        headers: dict[str, str],
        read_seconds: float,
        *,
        preload_content: bool = True,
    ) -> urllib3.BaseHTTPResponse:
        url = f"{self._configuration.host}{path}"
        if query:
            url += f"?{urlencode(query)}"
        return self._pool.request(
            method,
            url,
            body=data,
            headers=headers,
            timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=read_seconds),
            retries=False,
            redirect=False,
            preload_content=preload_content,
        )

    def _auth(self) -> dict[str, str]:
        """Asks the configuration each time, so that expiring tokens are renewed."""
        try:
            settings = self._configuration.auth_settings()
        except ConfigException as error:
            problem = f"Cluster {self.name}: could not get credentials: {network_failures.describe(error)}"
            raise self._counted(errors.Refused(problem)) from error
        return {
            setting["key"]: setting["value"]
            for setting in settings.values()
            if setting["in"] == "header" and setting["value"]
        }

    def _is_renewed(self, auth: Mapping[str, str]) -> bool:
        return self._renew(auth.get("authorization", ""))

    def _counted(self, error: errors.ClusterError, path: str = "") -> errors.ClusterError:
        """Count what is wrong with the cluster, for /metrics; a pod that does not answer yet is not."""
        for kind, name in _COUNTED.items():
            if isinstance(error, kind) and _POD_PROXY not in path:
                counters.increase(counters.CLUSTER_ERRORS, self.name, name)
        return error

    def _unreachable(self, error: Exception) -> errors.Unreachable:
        return errors.Unreachable(
            f"Cluster {self.name} at {self._configuration.host} does not answer: {network_failures.describe(error)}"
        )


def _check_page(size: int, *, most_bytes: int, deadline: float) -> None:
    if size > most_bytes:
        raise errors.ClusterError(f"The answer is larger than {most_bytes // 1024**2} MiB.")
    if time.monotonic() > deadline:
        raise errors.Unreachable("The answer is sent too slowly.")


def _split_lines(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    rest = b""
    # read1 gives what has come; read and stream would wait until a whole block is there.
    while chunk := response.read1(65_536):
        *whole, rest = (rest + chunk).split(b"\n")
        yield from (line for line in whole if line)
    if rest:
        yield rest
