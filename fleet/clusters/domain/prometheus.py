"""Results of Prometheus instant queries. An error and an empty result are different things."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

_MAX_MESSAGE_LENGTH: Final = 400


class PrometheusError(Exception):
    """The query has no result; the message is for people."""

    @property
    def message(self) -> str:
        return str(self)


class PrometheusUnreachable(PrometheusError):
    """It does not respond, responds too late, or fails: a retry may help."""


class PrometheusDenied(PrometheusError):
    """It refuses the portal's credentials."""


class QueryRefused(PrometheusError):
    """It rejects the query as invalid or too expensive."""


class NotPrometheus(PrometheusError):
    """The server does not speak the HTTP API of Prometheus."""


@dataclass(frozen=True, slots=True)
class Signing:
    """SigV4 settings for Amazon Managed Prometheus: the role must be allowed to query the workspace.
    An empty `role_arn` means the portal's own role.
    """

    region: str
    role_arn: str = ""


_AMAZON: Final = re.compile(r"https://aps-workspaces\.([a-z0-9-]+)\.amazonaws\.com(\.cn)?(/.*)?")


def signing_for(url: str, *, region: str, role_arn: str) -> Signing:
    """Take the region from the workspace's address: it can differ from the cluster's."""
    match = _AMAZON.fullmatch(url)
    return Signing(match.group(1) if match else region, role_arn)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A cluster's Prometheus. `token_path` names a file with a bearer token; `ca_pem` replaces the public
    certificate authorities when it is not empty.
    """

    url: str
    token_path: str = ""
    ca_pem: str = ""
    signing: Signing | None = None


@dataclass(frozen=True, slots=True)
class PrometheusSample:
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The result of a query. `kind` is scalar or vector; `warnings` say that parts of the data may be missing."""

    kind: str
    samples: tuple[PrometheusSample, ...]
    warnings: tuple[str, ...] = ()


def parse(status: int, body: bytes) -> QueryResult:
    """Parse a response. Raises a PrometheusError that describes any other one."""
    data, warnings = read_data(status, body)
    try:
        return _parse_result(data, warnings)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise NotPrometheus("the response does not follow the Prometheus API") from error


def read_data(status: int, body: bytes) -> tuple[Any, tuple[str, ...]]:
    """Return the data of a successful response, not yet validated, and its warnings. Raises a PrometheusError."""
    if status in (401, 403):
        raise PrometheusDenied(
            f"Prometheus returned {status}: the portal is not allowed to query it"
        )
    if 300 <= status < 400:
        raise NotPrometheus(f"it returned {status} and redirects elsewhere; register that address")
    content = _json(status, body)
    if content.get("status") == "error":
        _raise_refusal(status, content)
    if status >= 400 or content.get("status") != "success":
        raise _unexpected(status)
    warnings = content.get("warnings") or ()
    if "data" not in content or not isinstance(warnings, list | tuple):
        raise NotPrometheus("the response does not follow the Prometheus API")
    return content["data"], tuple(str(item)[:_MAX_MESSAGE_LENGTH] for item in warnings)


def _json(status: int, body: bytes) -> dict[str, Any]:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise _unexpected(status) from error
    if not isinstance(content, dict):
        raise _unexpected(status)
    return content


def _unexpected(status: int) -> PrometheusError:
    if status >= 500 or status == 429:
        return PrometheusUnreachable(f"Prometheus returned {status}")
    return NotPrometheus(f"it returned {status} with a body that is not from Prometheus")


def _raise_refusal(status: int, content: Mapping[str, Any]) -> None:
    kind, message = (
        content.get("errorType", ""),
        str(content.get("error", ""))[:_MAX_MESSAGE_LENGTH],
    )
    if kind in ("timeout", "canceled", "unavailable", "internal", "too_many_requests"):
        raise PrometheusUnreachable(f"Prometheus could not run the query ({kind}): {message}")
    raise QueryRefused(message or f"Prometheus rejected the query with {status}")


def _parse_result(data: Any, warnings: tuple[str, ...]) -> QueryResult:
    kind, result = data["resultType"], data["result"]
    if kind == "scalar":
        return QueryResult(kind, (PrometheusSample(float(result[1])),), warnings)
    if kind != "vector":
        raise QueryRefused(f"the query gives a {kind}, not one number")
    samples = tuple(
        PrometheusSample(
            float(item["value"][1]), {str(k): str(v) for k, v in item["metric"].items()}
        )
        for item in result
    )
    return QueryResult(kind, samples, warnings)
