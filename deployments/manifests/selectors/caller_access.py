"""Who may call a deployment, and how often, as its gateway is told."""

from __future__ import annotations

from collections.abc import Mapping

from django.db.models import Exists, OuterRef, Q

from deployments.manifests.domain.access import istio_access, provider_tokens
from deployments.manifests.domain.access.caller_keys import ClientLimit
from deployments.manifests.domain.access.istio_access import Issuer
from deployments.models import CallerKey, Deployment, SigningKey, TokenIssuer
from portal.core import clock


def limits(deployment: Deployment) -> dict[str, ClientLimit]:
    """By the name of the caller."""
    limited = CallerKey.objects.filter(
        Q(requests_per_minute__isnull=False) | Q(paused_until__isnull=False),
        deployment=deployment,
        ended_at=None,
    )
    return {
        row.client: ClientLimit(row.requests_per_minute, is_paused=row.paused_until is not None)
        for row in limited.select_related("consumer")
    }


def published() -> list[SigningKey]:
    """The current signing key, and those that signed a key which is still open. Sorted by key id."""
    opened = CallerKey.objects.filter(
        signing_key=OuterRef("pk"), ended_at=None, ends_at__gt=clock.now()
    )
    rows = SigningKey.objects.filter(Q(retired_at=None) | Exists(opened))
    return sorted(rows, key=lambda row: row.kid)


def jwks() -> str:
    """All public halves, as a JWK set."""
    return istio_access.jwks_of([row.public_jwk for row in published()])


def issuers() -> list[Issuer]:
    """By the name that their tokens have: it changes with the address of the portal."""
    by_name: dict[str, list[Mapping[str, str]]] = {}
    for row in published():
        by_name.setdefault(row.issuer, []).append(row.public_jwk)
    return [Issuer(name, istio_access.jwks_of(jwks)) for name, jwks in sorted(by_name.items())]


def principals(deployment: Deployment) -> list[str]:
    """`issuer/client` of each signed key that works now, sorted: all that a gateway may let through."""
    rows = CallerKey.objects.filter(
        deployment=deployment, ended_at=None, ends_at__gt=clock.now(), signing_key__isnull=False
    ).select_related("consumer", "signing_key")
    return sorted(f"{row.signing_key.issuer}/{row.client}" for row in rows if row.signing_key)


def token_issuer(name: str) -> provider_tokens.Issuer:
    """Also one that was removed."""
    row = TokenIssuer.objects.get(name=name)
    return provider_tokens.Issuer(
        name=row.name,
        url=row.url,
        jwks_url=row.jwks_url,
        audiences=tuple(row.audiences),
        claim=row.claim,
        required=tuple(provider_tokens.RequiredClaim.from_json(one) for one in row.required_claims),
    )


def claim_values(deployment: Deployment, issuer: str) -> list[str]:
    """Of each caller that may send tokens of the issuer now, sorted."""
    rows = CallerKey.objects.filter(
        deployment=deployment, ended_at=None, ends_at__gt=clock.now(), token_issuer__name=issuer
    )
    return sorted(rows.values_list("claim_value", flat=True))
