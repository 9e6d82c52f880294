"""A transparency log: a Merkle tree (RFC 6962) with signed checkpoints, as Rekor v1 and v2."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.deployments.attestations.signing import Key, b64, new_key

ECDSA = ec.ECDSA(hashes.SHA256())


def public_der(key: Key) -> bytes:
    return key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def log_id(key: Key) -> bytes:
    return hashlib.sha256(public_der(key)).digest()


@dataclass
class Log:
    """A Merkle tree (RFC 6962) that signs its checkpoints and, as Rekor v1, the time of entries."""

    key: Key = field(default_factory=new_key)
    name: str = "rekor.acme.example"
    leaves: list[bytes] = field(default_factory=lambda: [b"first", b"second", b"third"])

    def add(self, body: Mapping[str, Any], at: datetime | None) -> dict[str, Any]:
        """`at` None: as Rekor v2, which signs no times."""
        leaf = json.dumps(body, sort_keys=True, separators=(",", ":")).encode()
        self.leaves.append(leaf)
        index = len(self.leaves) - 1
        entry: dict[str, Any] = {
            "logIndex": str(index),
            "logId": {"keyId": b64(log_id(self.key))},
            "kindVersion": {"kind": body["kind"], "version": body["apiVersion"]},
            "canonicalizedBody": b64(leaf),
            "inclusionProof": {
                "logIndex": str(index),
                "rootHash": b64(_root(self.leaves)),
                "treeSize": str(len(self.leaves)),
                "hashes": [b64(one) for one in _path(index, self.leaves)],
                "checkpoint": {"envelope": self.checkpoint()},
            },
        }
        if at is not None:
            entry["integratedTime"] = str(int(at.timestamp()))
            entry["inclusionPromise"] = {"signedEntryTimestamp": b64(self._promise(entry))}
        return entry

    def checkpoint(self) -> str:
        note = f"{self.name} - 1\n{len(self.leaves)}\n{b64(_root(self.leaves))}\n"
        signature = log_id(self.key)[:4] + self.key.sign(note.encode(), ECDSA)
        return f"{note}\n\u2014 {self.name} {b64(signature)}\n"

    def _promise(self, entry: Mapping[str, Any]) -> bytes:
        payload = {
            "body": entry["canonicalizedBody"],
            "integratedTime": int(entry["integratedTime"]),
            "logID": log_id(self.key).hex(),
            "logIndex": int(entry["logIndex"]),
        }
        text = json.dumps(payload, sort_keys=True, separators=(",", ":"))
        return self.key.sign(text.encode(), ECDSA)


def _leaf(data: bytes) -> bytes:
    return hashlib.sha256(b"\0" + data).digest()


def _root(leaves: Sequence[bytes]) -> bytes:
    if len(leaves) == 1:
        return _leaf(leaves[0])
    half = 1 << (len(leaves) - 1).bit_length() - 1
    return hashlib.sha256(b"\1" + _root(leaves[:half]) + _root(leaves[half:])).digest()


def _path(index: int, leaves: Sequence[bytes]) -> list[bytes]:
    if len(leaves) == 1:
        return []
    half = 1 << (len(leaves) - 1).bit_length() - 1
    if index < half:
        return [*_path(index, leaves[:half]), _root(leaves[half:])]
    return [*_path(index - half, leaves[half:]), _root(leaves[:half])]
