"""A security key in memory: it makes passkeys and signs challenges as a browser's would (ES256, no attestation)."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from fido2 import cbor
from fido2.cose import ES256
from fido2.utils import websafe_decode, websafe_encode

_PRESENT_AND_VERIFIED = 0x05
_HAS_CREDENTIAL = 0x40


@dataclass
class SoftAuthenticator:
    origin: str = "http://testserver"
    count: int = 0
    credential_id: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )

    def create(self, options: Mapping[str, Any]) -> str:
        public = cbor.encode(dict(ES256.from_cryptography_key(self.key.public_key())))
        length = len(self.credential_id).to_bytes(2, "big")
        credential = bytes(16) + length + self.credential_id + public
        flags = _PRESENT_AND_VERIFIED | _HAS_CREDENTIAL
        data = self._data(options["rp"]["id"], flags) + credential
        attestation = cbor.encode({"fmt": "none", "attStmt": {}, "authData": data})
        client = self._client("webauthn.create", options, {})
        response = {"clientDataJSON": client, "attestationObject": attestation}
        return self._answer(response)

    def get(
        self,
        options: Mapping[str, Any],
        changed: Mapping[str, str] | None = None,
        *,
        flags: int = _PRESENT_AND_VERIFIED,
    ) -> str:
        self.count += 1
        data = self._data(options["rpId"], flags)
        signed = self._client("webauthn.get", options, changed or {})
        message = data + hashlib.sha256(signed).digest()
        signature = self.key.sign(message, ec.ECDSA(hashes.SHA256()))
        response = {"clientDataJSON": signed, "authenticatorData": data, "signature": signature}
        return self._answer(response)

    def _data(self, host: str, flags: int) -> bytes:
        return (
            hashlib.sha256(host.encode()).digest() + bytes([flags]) + self.count.to_bytes(4, "big")
        )

    def _client(self, kind: str, options: Mapping[str, Any], changed: Mapping[str, str]) -> bytes:
        said = {"type": kind, "challenge": options["challenge"], "origin": self.origin}
        return json.dumps({**said, **changed}).encode()

    def _answer(self, response: Mapping[str, bytes]) -> str:
        key = websafe_encode(self.credential_id)
        assert websafe_decode(key) == self.credential_id
        texts = {name: websafe_encode(value) for name, value in response.items()}
        return json.dumps({"id": key, "rawId": key, "type": "public-key", "response": texts})
