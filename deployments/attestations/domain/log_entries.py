"""The claims of a keyless bundle about its own time: its log entry and its timestamps. Nothing is verified here."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from deployments.attestations.domain.bundles import AttestationInvalid

_MOST_TIMESTAMPS: Final = 8
_NUMBER: Final = re.compile("[0-9]{1,19}")
_MOST_INDEX: Final = 2**63 - 1


class NotProved(ValueError):
    """A part of the proof does not hold. The message says which, for the person who added the attestation."""


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims of a bundle about its log entry. `log_id` is in base64; `integrated_at` is when the log says that
    it took the entry, None if it does not sign that.
    """

    log_id: str
    log_index: int | None
    integrated_at: datetime | None
    # RFC 3161, DER.
    timestamps: tuple[bytes, ...] = ()


def read(document: Mapping[str, Any]) -> Claims:
    """Read the claims of a Sigstore bundle. Raises NotProved if the log entry is missing or incomplete, and
    AttestationInvalid if it cannot be read.
    """
    material = _mapping(document.get("verificationMaterial"))
    entries = material.get("tlogEntries")
    if not isinstance(entries, list) or not entries:
        raise NotProved(
            "It has no entry of a transparency log, so nothing proves when it was signed. Sign it again "
            "with the log on."
        )
    if len(entries) > 1:
        raise NotProved("It has several log entries; a bundle has one.")
    entry = _mapping(entries[0])
    proof, promise = _mapping(entry.get("inclusionProof")), entry.get("inclusionPromise")
    if not proof or not _mapping(proof.get("checkpoint")):
        raise NotProved("Its log entry has no inclusion proof with a checkpoint.")
    stamps = _mapping(material.get("timestampVerificationData")).get("rfc3161Timestamps") or []
    if not isinstance(stamps, list) or len(stamps) > _MOST_TIMESTAMPS:
        raise NotProved(f"It has more than {_MOST_TIMESTAMPS} timestamps.")
    return Claims(
        log_id=str(_mapping(entry.get("logId")).get("keyId", "")),
        # Only a signed promise binds the index of the whole log; the proof binds that of its shard.
        log_index=_number((entry if promise else proof).get("logIndex")),
        integrated_at=_time(entry.get("integratedTime")) if promise else None,
        timestamps=tuple(_decode(_mapping(row).get("signedTimestamp")) for row in stamps),
    )


def without_aliases(value: Any) -> Any:
    """Return the same JSON without names that contain an underscore.

    Readers of Protobuf take `log_index` for `logIndex` too, so a bundle could say one thing to the verifier and
    another to us. What is signed is base64 and stays as it is.
    """
    if isinstance(value, Mapping):
        return {name: without_aliases(part) for name, part in value.items() if "_" not in name}
    return [without_aliases(part) for part in value] if isinstance(value, list) else value


def _number(value: Any) -> int | None:
    if not isinstance(value, str) or not _NUMBER.fullmatch(value) or int(value) > _MOST_INDEX:
        return None
    return int(value)


def _time(value: Any) -> datetime | None:
    seconds = _number(value)
    if not seconds:
        return None
    try:
        return datetime.fromtimestamp(seconds, tz=UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise AttestationInvalid("integratedTime of the log entry is not a time.") from error


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _decode(value: Any) -> bytes:
    try:
        return base64.b64decode(value if isinstance(value, str) else "", validate=True)
    except ValueError as error:
        raise AttestationInvalid("A timestamp of the bundle is not base64.") from error
