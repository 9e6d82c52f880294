"""What a Prometheus answers to one instant query. No answer and an empty one are different things."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

_MOST_WORDS: Final = 400


class PrometheusError(Exception):
    """No answer that says anything; the message is for people."""

    @property
    def message(self) -> str:
        return str(self)


class PrometheusUnreachable(PrometheusError):
    """It does not answer, not in time, or is broken: asking again may help."""


class PrometheusDenied(PrometheusError):
    """It does not let the portal in."""


class QueryRefused(PrometheusError):
    """It answers that this query is wrong, or too much for it."""


class NotPrometheus(PrometheusError):
    """What answered does not speak the HTTP API of Prometheus."""


@dataclass(frozen=True, slots=True)
class Signing:
    """Amazon Managed Prometheus takes requests signed by a role that may query the workspace;
    `role_arn` empty: the portal's own.
    """

    region: str
    role_arn: str = ""


_AMAZON: Final = re.compile(r"https://aps-workspaces\.([a-z0-9-]+)\.amazonaws\.com(\.cn)?(/.*)?")


def signing_for(url: str, *, region: str, role_arn: str) -> Signing:
    """The workspace's address names its region, which may not be the cluster's."""
    found = _AMAZON.fullmatch(url)
    return Signing(found.group(1) if found else region, role_arn)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a cluster's Prometheus is. `token_path` names a file that holds a bearer token;
    `ca_pem`: the only certificates it is trusted by, empty: the public ones.
    """

    url: str
    token_path: str = ""
    ca_pem: str = ""
    signing: Signing | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """`kind` is scalar or vector. `warnings`: parts of the data may be missing."""

    kind: str
    samples: tuple[Sample, ...]
    warnings: tuple[str, ...] = ()


def read(status: int, body: bytes) -> Answer:
    """Raises a PrometheusError that says in words what was answered instead."""
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
        raise _unfit(status)
    try:
        return _answer(content)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise NotPrometheus("the response does not follow the Prometheus API") from error


def _json(status: int, body: bytes) -> dict[str, Any]:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise _unfit(status) from error
    if not isinstance(content, dict):
        raise _unfit(status)
    return content


def _unfit(status: int) -> PrometheusError:
    if status >= 500 or status == 429:
        return PrometheusUnreachable(f"Prometheus returned {status}")
    return NotPrometheus(f"it returned {status} with a body that is not from Prometheus")


def _raise_refusal(status: int, content: Mapping[str, Any]) -> None:
    kind, words = content.get("errorType", ""), str(content.get("error", ""))[:_MOST_WORDS]
    if kind in ("timeout", "canceled", "unavailable", "internal", "too_many_requests"):
        raise PrometheusUnreachable(f"Prometheus could not run the query ({kind}): {words}")
    raise QueryRefused(words or f"Prometheus rejected the query with {status}")


def _answer(content: Mapping[str, Any]) -> Answer:
    data = content["data"]
    kind, result = data["resultType"], data["result"]
    warnings = tuple(str(one)[:_MOST_WORDS] for one in content.get("warnings") or ())
    if kind == "scalar":
        return Answer(kind, (Sample(float(result[1])),), warnings)
    if kind != "vector":
        raise QueryRefused(f"the query gives a {kind}, not one number")
    samples = tuple(
        Sample(float(one["value"][1]), {str(k): str(v) for k, v in one["metric"].items()})
        for one in result
    )
    return Answer(kind, samples, warnings)
