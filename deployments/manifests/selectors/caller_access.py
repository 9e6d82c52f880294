"""The callers of a deployment and their limits, as its gateway is told."""

from __future__ import annotations

from collections.abc import Mapping

from django.db.models import Exists, OuterRef, Q, QuerySet

from deployments.access.domain import callers
from deployments.access.domain.callers import Callers, RequiredClaim
from deployments.access.domain.headers import CALLER_HEADER
from deployments.manifests.domain.access import (
    caller_keys,
    istio_access,
    limit_rules,
)
from deployments.manifests.domain.access.istio_access import TokenSigner
from deployments.manifests.domain.access.limit_rules import ClientLimit, LimitRules
from deployments.models import CallerKey, Deployment, SigningKey, TokenIssuer
from portal.core import clock


def limits(deployment: Deployment, issuer: str) -> LimitRules:
    """Return the limits of who may call now: callers with tokens of the issuer. An empty issuer means callers with keys."""
    limited = _open_keys(deployment, issuer).filter(
        Q(requests_per_minute__isnull=False) | Q(paused_until__isnull=False)
    )
    by_client = {
        row.client: ClientLimit(row.requests_per_minute, is_paused=row.paused_until is not None)
        for row in limited
    }
    return limit_rules.rules_of(by_client, header=CALLER_HEADER, are_numbered=not issuer)


def limit_rules_needed(deployment: Deployment, issuer: str) -> int:
    """Return the number of limit rules that are needed at most, whichever of the callers are paused. `issuer`
    names the token issuer; empty for keys.
    """
    rows = list(
        _open_keys(deployment, issuer).filter(
            Q(requests_per_minute__isnull=False)
            | Q(tokens_per_minute__isnull=False)
            | Q(tokens_per_day__isnull=False)
        )
    )
    pausable = [row.client for row in rows if row.tokens_per_minute or row.tokens_per_day]
    by_client = {row.client: row.requests_per_minute for row in rows}
    return limit_rules.rules_needed(by_client, pausable, are_numbered=not issuer)


def limits_in_use(deployment: Deployment, issuer: str) -> list[int]:
    """Return the requests a minute that callers are limited to, sorted."""
    rows = _open_keys(deployment, issuer).filter(requests_per_minute__isnull=False)
    stated = rows.values_list("requests_per_minute", flat=True)
    return sorted({limit for limit in stated if limit is not None})


def _open_keys(deployment: Deployment, issuer: str) -> QuerySet[CallerKey]:
    whose = Q(token_issuer__name=issuer) if issuer else Q(token_issuer=None)
    return CallerKey.objects.filter(whose, deployment=deployment, ended_at=None).select_related(
        "consumer"
    )


def has_pipeline_key(deployment: Deployment) -> bool:
    """Whether a pipeline's requests to it have a key, for another deployment that the pipeline calls."""
    rows = CallerKey.objects.filter(deployment=deployment, ended_at=None)
    return rows.filter(pipeline_key__isnull=False).exists()


def list_published() -> list[SigningKey]:
    """Return the current signing key, and those that signed a key which is still open. Sorted by key id."""
    opened = CallerKey.objects.filter(
        signing_key=OuterRef("pk"), ended_at=None, ends_at__gt=clock.now()
    )
    rows = SigningKey.objects.filter(Q(retired_at=None) | Exists(opened))
    return sorted(rows, key=lambda row: row.kid)


def jwks() -> str:
    """Return all public halves as a JWK set."""
    return istio_access.jwks_of([row.public_jwk for row in list_published()])


def issuers() -> list[TokenSigner]:
    """Return the issuers of signed keys, sorted by the name that their tokens have. It changes with the address
    of the portal.
    """
    by_name: dict[str, list[Mapping[str, str]]] = {}
    for row in list_published():
        by_name.setdefault(row.issuer, []).append(row.public_jwk)
    return [TokenSigner(name, istio_access.jwks_of(jwks)) for name, jwks in sorted(by_name.items())]


def principals(deployment: Deployment) -> list[str]:
    """Return `issuer/client` of each signed key that works now, sorted: all that a gateway may let through."""
    rows = CallerKey.objects.filter(
        deployment=deployment, ended_at=None, ends_at__gt=clock.now(), signing_key__isnull=False
    ).select_related("consumer", "signing_key")
    return sorted(f"{row.signing_key.issuer}/{row.client}" for row in rows if row.signing_key)


def callers_of(deployment: Deployment, issuer: str) -> Callers:
    """Return the callers of a deployment. `issuer` names the token issuer; empty for keys."""
    secret = caller_keys.secret_name(deployment.name)
    if not issuer:
        return Callers(secret)
    return Callers(secret, _read_issuer(issuer), _claim_values(deployment, issuer))


def _read_issuer(name: str) -> callers.IdentityProvider:
    """Read a token issuer, even one that was removed."""
    row = TokenIssuer.objects.get(name=name)
    return callers.IdentityProvider(
        name=row.name,
        url=row.url,
        jwks_url=row.jwks_url,
        audiences=tuple(row.audiences),
        claim=row.claim,
        required=tuple(RequiredClaim.from_json(one) for one in row.required_claims),
    )


def _claim_values(deployment: Deployment, issuer: str) -> list[str]:
    """Return the claim value of each caller that may send tokens of the issuer now, sorted."""
    rows = CallerKey.objects.filter(
        deployment=deployment, ended_at=None, ends_at__gt=clock.now(), token_issuer__name=issuer
    )
    return sorted(rows.values_list("claim_value", flat=True))
