"""A Sigstore trust root (`trusted_root.json`): authorities and logs that vouch for keyless signatures."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization

MOST_BYTES: Final = 200_000
# What the documents of Sigstore call each kind, and what people read.
AUTHORITIES: Final = {
    "certificateAuthorities": "certificate authority",
    "timestampAuthorities": "timestamp authority",
}
LOGS: Final = {"tlogs": "transparency log", "ctlogs": "certificate log"}
# Without one of each, nothing can be proved.
_NEEDED: Final = ("certificateAuthorities", "tlogs", "ctlogs")
_MOST: Final = 50
_LONGEST_NAME: Final = 200


class TrustRootInvalid(ValueError):
    """A trust root cannot be used. The message says what is wrong, for the admin who pasted it."""


@dataclass(frozen=True, slots=True)
class Instance:
    """An authority or log of a trust root. `until` is None while it is in use.

    `certificates_until` is when the first certificate of an authority ends, None for a log.
    """

    kind: str
    name: str
    since: datetime | None
    until: datetime | None
    certificates_until: datetime | None = None


def read(document: Any) -> tuple[Instance, ...]:
    """Read the authorities and logs of a trust root from parsed JSON. Raises TrustRootInvalid."""
    if not isinstance(document, Mapping) or "trustedroot" not in str(document.get("mediaType")):
        raise TrustRootInvalid("This is not a trusted_root.json of Sigstore.")
    found = [
        instance
        for part, kind in {**AUTHORITIES, **LOGS}.items()
        for instance in _instances(document.get(part) or [], part, kind)
    ]
    missing = [kind for part, kind in {**AUTHORITIES, **LOGS}.items() if _lacks(document, part)]
    if missing:
        raise TrustRootInvalid(f"It has no {' and no '.join(missing)}.")
    return tuple(found)


def at(document: Mapping[str, Any], times: Iterable[datetime]) -> dict[str, Any]:
    """Return the same root with only what was in use at all those times: a retired key vouches for nothing later."""
    moments = tuple(times)
    kept = dict(document)
    for part in (*AUTHORITIES, *LOGS):
        rows = document.get(part) or []
        kept[part] = [row for row in rows if all(_covers(_window(row, part), t) for t in moments)]
    return kept


def missing_of(document: Mapping[str, Any]) -> str:
    """Return the first required kind that the root lacks, as people read it. Empty if none is missing."""
    names = {**AUTHORITIES, **LOGS}
    return next((names[part] for part in _NEEDED if not document.get(part)), "")


def log_ids(document: Mapping[str, Any]) -> frozenset[str]:
    """Return the ids of the logs in base64, as log entries name their log."""
    return frozenset(row.get("logId", {}).get("keyId", "") for row in document.get("tlogs") or [])


def _lacks(document: Mapping[str, Any], part: str) -> bool:
    return part in _NEEDED and not document.get(part)


def _instances(rows: Any, part: str, kind: str) -> Iterable[Instance]:
    if not isinstance(rows, list) or len(rows) > _MOST:
        raise TrustRootInvalid(f"{part} must be a list of up to {_MOST}.")
    for row in rows:
        if not isinstance(row, Mapping):
            raise TrustRootInvalid(f"{part} must be a list of objects.")
        since, until = _window(row, part)
        if part in LOGS:
            _check_key(row, kind)
            yield Instance(kind, _name(row.get("baseUrl")), since, until)
        else:
            yield Instance(kind, _authority_name(row), since, until, _check_chain(row, kind))


def _authority_name(row: Mapping[str, Any]) -> str:
    subject = row.get("subject")
    parts = subject if isinstance(subject, Mapping) else {}
    names = [
        _name(parts.get("commonName")),
        _name(parts.get("organization")),
        _name(row.get("uri")),
    ]
    return ", ".join(name for name in names if name)[:_LONGEST_NAME]


def _check_key(row: Mapping[str, Any], kind: str) -> None:
    key = row.get("publicKey")
    raw = key.get("rawBytes") if isinstance(key, Mapping) else None
    try:
        serialization.load_der_public_key(_decode(raw))
    except (ValueError, UnsupportedAlgorithm) as error:
        raise TrustRootInvalid(f"The public key of a {kind} cannot be read.") from error


def _check_chain(row: Mapping[str, Any], kind: str) -> datetime:
    chain = row.get("certChain")
    rows = chain.get("certificates") if isinstance(chain, Mapping) else None
    if not isinstance(rows, list) or not 1 <= len(rows) <= _MOST:
        raise TrustRootInvalid(f"A {kind} has no certificates.")
    try:
        raws = [one.get("rawBytes") if isinstance(one, Mapping) else None for one in rows]
        return min(x509.load_der_x509_certificate(_decode(raw)).not_valid_after_utc for raw in raws)
    except (ValueError, UnsupportedAlgorithm, x509.InvalidVersion) as error:
        raise TrustRootInvalid(f"A certificate of a {kind} cannot be read.") from error


def _window(row: Mapping[str, Any], part: str) -> tuple[datetime | None, datetime | None]:
    holder = row.get("publicKey") if part in LOGS else row
    window = holder.get("validFor") if isinstance(holder, Mapping) else None
    values = window if isinstance(window, Mapping) else {}
    return _time(values.get("start")), _time(values.get("end"))


def _covers(window: tuple[datetime | None, datetime | None], at: datetime) -> bool:
    since, until = window
    return (since is None or since <= at) and (until is None or at <= until)


def _time(value: Any) -> datetime | None:
    if value is None:
        return None
    try:
        return datetime.fromisoformat(str(value)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise TrustRootInvalid(f"{str(value)[:40]} is not a time.") from error


def _name(value: Any) -> str:
    return value[:_LONGEST_NAME] if isinstance(value, str) else ""


def _decode(value: Any) -> bytes:
    """Decode base64. Raises ValueError."""
    return base64.b64decode(value if isinstance(value, str) else "", validate=True)
