"""The translation of an API server's responses to the portal's errors."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from fleet.kube.domain import errors

_DEFAULT_RETRY_AFTER = 5.0
_BY_STATUS: dict[int, type[errors.ClusterError]] = {
    401: errors.Refused,
    403: errors.NotAllowed,
    404: errors.ObjectNotFound,
    409: errors.ObjectConflict,
    410: errors.WatchExpired,
}
# Server-side apply of an object that does not fit its schema: an API server answers 500 with no
# reason. In brackets are the object's name and kind. A conversion webhook that fails is an outage.
_SCHEMA_REFUSAL = re.compile(
    r"^failed to (?:create typed patch object|convert new (?:typed )?object|convert to unversioned)"
    r" \([^)]*\)(?: to [^:]*)?: (?!conversion webhook )(?P<faults>.*)",
    re.DOTALL,
)
_FAULT = re.compile(r"^\s*\.(?P<field>\S+): (?P<message>.+)$", re.MULTILINE)


def build_error(status: int, content: bytes, retry_after: str | None = None) -> errors.ClusterError:
    """Map a response to our errors, keeping the server's message and field causes."""
    message, causes, delay = _read_status(content)
    text = message or f"the cluster answered {status}"
    if status == 429:
        seconds = _seconds(retry_after, delay)
        return errors.Throttled(text, retry_after_seconds=seconds, causes=causes)
    if status in _BY_STATUS:
        return _BY_STATUS[status](text, causes=causes)
    if refusal := _SCHEMA_REFUSAL.match(message):
        return errors.ObjectInvalid(text, causes=list(_faults_in(refusal["faults"])))
    kind = errors.Unreachable if status >= 500 else errors.ObjectInvalid
    return kind(text, causes=causes)


def _faults_in(text: str) -> Iterator[errors.FieldCause]:
    for fault in _FAULT.finditer(text):
        yield errors.FieldCause(field=fault["field"], message=fault["message"])


def _seconds(header: str | None, from_body: float) -> float:
    if header and header.isdigit():
        return float(header)
    return from_body or _DEFAULT_RETRY_AFTER


def is_status(content: bytes) -> bool:
    try:
        body = json.loads(content)
    except ValueError:
        return False
    return isinstance(body, dict) and (body.get("kind"), body.get("apiVersion")) == (
        "Status",
        "v1",
    )


def _read_status(content: bytes) -> tuple[str, list[errors.FieldCause], float]:
    try:
        body = json.loads(content)
    except ValueError:
        return content.decode("utf-8", "replace")[:500].strip(), [], 0.0
    if not isinstance(body, dict):
        return "", [], 0.0
    details = body.get("details") or {}
    causes = [
        errors.FieldCause(
            field=str(cause.get("field", "")),
            message=str(cause.get("message", "")),
            reason=str(cause.get("reason", "")),
        )
        for cause in details.get("causes") or []
    ]
    return str(body.get("message", "")), causes, float(details.get("retryAfterSeconds") or 0)
