"""The verdicts of a worker on an attestation."""

from __future__ import annotations

from enum import StrEnum


class AttestationState(StrEnum):
    # Until a worker verified it, which needs the version's own digests first.
    PENDING = "pending"
    TRUSTED = "trusted"
    # Nobody who is trusted signed it.
    UNTRUSTED = "untrusted"
    # It cannot be read, or is not about the version's bytes.
    INVALID = "invalid"
