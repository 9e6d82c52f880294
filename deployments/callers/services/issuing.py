"""Make the text of a caller's key: random where the gateway compares keys, signed where it verifies them."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Final

from django.conf import settings

from deployments.access.domain.headers import KEY_PREFIX
from deployments.callers.domain import signed_keys
from deployments.callers.selectors.keys import SEALED
from deployments.models import CallerKey, Consumer, Deployment, SigningKey
from fleet.clusters.domain.capabilities import Capabilities
from portal.accounts.models import User
from portal.core import clock, sealing

SIGNING: Final = "signing keys of callers"
# After this long the next key of a caller is signed by a new key.
ROTATE_AFTER: Final = timedelta(days=90)
_DEFAULT_ISSUER: Final = "slipway"


@dataclass(frozen=True, slots=True)
class KeyLimits:
    """The limits of one key at the gateway, which answers 429 above them. None means no limit."""

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    tokens_per_day: int | None = None

    @classmethod
    def from_key(cls, key: CallerKey) -> KeyLimits:
        return cls(key.requests_per_minute, key.tokens_per_minute, key.tokens_per_day)


NO_LIMITS: Final = KeyLimits()


@dataclass(frozen=True, slots=True)
class NewKey:
    """A new key. `plain` is shown once and stored nowhere in the clear."""

    row: CallerKey
    plain: str


def is_signed(deployment: Deployment) -> bool:
    return Capabilities.from_json(deployment.cluster.capabilities).verifies_tokens


def issue(
    actor: User, deployment: Deployment, consumer: Consumer, *, days: int, limits: KeyLimits
) -> NewKey:
    """Create a key. Call inside a transaction. 256 random bits need no salt and no slow hash."""
    at = clock.now()
    plain = KEY_PREFIX + secrets.token_urlsafe(32)
    row = CallerKey.objects.create(
        consumer=consumer,
        deployment=deployment,
        prefix=plain[:10],
        sha256=_hash(plain),
        sealed=sealing.seal(SEALED, plain),
        **asdict(limits),
        created_by=actor,
        created_at=at,
        ends_at=at + timedelta(days=days),
    )
    if not is_signed(deployment):
        return NewKey(row, plain)
    # The token names the row's number, so the row comes first.
    plain, row.signing_key = _signed(row)
    row.prefix, row.sha256 = signed_keys.hint_of(plain), _hash(plain)
    # Sealed too: a gateway that compares keys takes the same text, should the cluster get one.
    row.sealed = sealing.seal(SEALED, plain)
    row.save(update_fields=["prefix", "sha256", "sealed", "signing_key"])
    return NewKey(row, plain)


def _signed(row: CallerKey) -> tuple[str, SigningKey]:
    signer = _current()
    try:
        pem = sealing.unseal(SIGNING, signer.sealed)
    except sealing.UnreadableSecret:
        # The portal's secret key changed. Its public half stays published for the keys that it signed.
        signer = _replace()
        pem = sealing.unseal(SIGNING, signer.sealed)
    plain = signed_keys.sign(
        private_pem=pem,
        kid=signer.kid,
        issuer=signer.issuer,
        client=row.client,
        audience=f"{row.deployment.team.slug}/{row.deployment.name}",
        starts_at=row.created_at,
        ends_at=row.ends_at,
    )
    return plain, signer


def _current() -> SigningKey:
    since = clock.now() - ROTATE_AFTER
    rows = SigningKey.objects.select_for_update().filter(
        retired_at=None, issuer=_issuer(), created_at__gt=since
    )
    return rows.first() or _replace()


def _replace() -> SigningKey:
    """Create a signing key. The private halves of others are erased: nothing is signed with them any more."""
    at, pair = clock.now(), signed_keys.new_key_pair()
    SigningKey.objects.filter(retired_at=None).update(retired_at=at, sealed="")
    return SigningKey.objects.create(
        kid=pair.kid,
        issuer=_issuer(),
        public_jwk=dict(pair.public_jwk),
        sealed=sealing.seal(SIGNING, pair.private_pem),
        created_at=at,
    )


def _issuer() -> str:
    """Return the issuer of signed keys. Without a public address any name works: gateways get the public keys with
    their policies.
    """
    return settings.SLIPWAY_PUBLIC_URL or _DEFAULT_ISSUER


def _hash(plain: str) -> str:
    return hashlib.sha256(plain.encode()).hexdigest()
