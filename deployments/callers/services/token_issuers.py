"""Register identity providers whose JWTs gateways accept. Platform admins only."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from django.db import IntegrityError, transaction

from deployments import audit_actions
from deployments.access.domain import callers
from deployments.access.domain.callers import RequiredClaim
from deployments.callers.selectors import token_issuers
from deployments.models import TokenIssuer
from deployments.spec.domain.pod_settings import ISSUER_NAME
from fleet.clusters.selectors import clusters
from portal.accounts import policy
from portal.accounts.local import step_up
from portal.accounts.models import User
from portal.audit import trail
from portal.core import clock
from portal.core.errors import Conflict, Invalid, NotFound

# What Envoy Gateway takes.
LONGEST_URL: Final = 253
MOST_AUDIENCES: Final = 8
MOST_REQUIRED: Final = 15
MOST_VALUES: Final = callers.MOST_VALUES
LONGEST_VALUE: Final = 200
LONGEST_CLAIM: Final = 100
_CLAIM: Final = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_PRINTABLE: Final = re.compile(r"[!-~]+")
# Without TLS whoever is on the way could publish keys of their own.
_OWN_HOSTS: Final = re.compile(r"127\.0\.0\.1|localhost|[^/]+\.svc(\.cluster\.local)?")


@dataclass(frozen=True, slots=True)
class IssuerDraft:
    """The fields of a token issuer. `cluster_id` None means all clusters."""

    name: str
    url: str
    jwks_url: str
    audiences: Sequence[str]
    cluster_id: int | None = None
    claim: str = "sub"
    required_claims: Sequence[RequiredClaim] = ()


def is_value(text: str) -> bool:
    """Whether a header can carry the text unchanged, and a rule compare it."""
    return len(text) <= LONGEST_VALUE and bool(_PRINTABLE.fullmatch(text))


def add(*, actor: User, draft: IssuerDraft) -> TokenIssuer:
    """Add a token issuer. Raises Invalid, or Conflict for a name that is or was taken."""
    policy.require_platform_admin(actor)
    step_up.require(actor)
    problems = dict(_problems(draft))
    if problems:
        raise Invalid(f"Check {', '.join(sorted(problems))} of the issuer.", fields=problems)
    row = TokenIssuer(
        name=draft.name,
        cluster_id=draft.cluster_id,
        url=draft.url,
        jwks_url=draft.jwks_url,
        audiences=list(draft.audiences),
        claim=draft.claim,
        required_claims=[one.to_json() for one in draft.required_claims],
        created_by=actor,
        created_at=clock.now(),
    )
    with transaction.atomic():
        try:
            with transaction.atomic():
                row.save(force_insert=True)
        except IntegrityError as error:
            message = f"There is or was an issuer called {row.name}. Choose another name."
            raise Conflict(message, code="name_taken", fields={"name": "taken"}) from error
        trail.record(
            actor=actor, action=audit_actions.TOKEN_ISSUER_ADDED, obj=row, after=_values(row)
        )
    return row


def remove(*, actor: User, issuer_id: int) -> None:
    """Remove a token issuer. Raises NotFound, and Conflict while a deployment uses it or an approved request will."""
    policy.require_platform_admin(actor)
    with transaction.atomic():
        rows = TokenIssuer.objects.select_for_update().filter(pk=issuer_id, removed_at=None)
        row = rows.first()
        if row is None:
            raise NotFound(f"There is no token issuer {issuer_id}.")
        users = token_issuers.users()[row.name]
        if users:
            message = (
                f"{', '.join(users[:3])} accepts tokens of {row.name}. Change its callers first."
            )
            raise Conflict(message, code="in_use")
        TokenIssuer.objects.filter(pk=row.pk).update(removed_at=clock.now())
        trail.record(
            actor=actor, action=audit_actions.TOKEN_ISSUER_REMOVED, obj=row, before=_values(row)
        )


def _problems(draft: IssuerDraft) -> Iterator[tuple[str, str]]:
    if not draft.name or not re.fullmatch(ISSUER_NAME, draft.name):
        yield "name", "lowercase letters, digits and hyphens, 40 at most"
    known = {row.id for row in clusters.list_clusters()} if draft.cluster_id is not None else set()
    if draft.cluster_id is not None and draft.cluster_id not in known:
        yield "cluster_id", "there is no such cluster"
    if not _is_url(draft.url):
        yield "url", "a URL, exactly as tokens have it in iss"
    if not _is_url(draft.jwks_url) or not _is_protected(draft.jwks_url):
        yield "jwks_url", "an https URL; http only inside the cluster (….svc) or on this machine"
    if not 1 <= len(draft.audiences) <= MOST_AUDIENCES or not all(map(is_value, draft.audiences)):
        yield (
            "audiences",
            f"1 to {MOST_AUDIENCES}: without one, tokens for any service would be accepted",
        )
    if not _is_claim(draft.claim):
        yield "claim", "the name of a claim, for example sub or client_id; nested: realm.client"
    yield from _required_problems(draft)


def _required_problems(draft: IssuerDraft) -> Iterator[tuple[str, str]]:
    required = draft.required_claims
    names = [one.claim for one in required]
    if len(required) > MOST_REQUIRED or not all(map(_is_claim, names)):
        yield "required_claims", f"{MOST_REQUIRED} claims at most, each with a name"
    elif draft.claim in names or len(set(names)) < len(names):
        yield "required_claims", "each claim once, and not the one that names the caller"
    elif not all(
        1 <= len(one.values) <= MOST_VALUES and all(map(is_value, one.values)) for one in required
    ):
        yield "required_claims", f"1 to {MOST_VALUES} values each, without spaces"


def _is_claim(name: str) -> bool:
    return len(name) <= LONGEST_CLAIM and bool(_CLAIM.fullmatch(name))


def _is_url(text: str) -> bool:
    if not 1 <= len(text) <= LONGEST_URL or not _PRINTABLE.fullmatch(text):
        return False
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return False
    is_http = parts.scheme in ("http", "https") and port != 0
    return is_http and bool(parts.hostname) and "@" not in parts.netloc and not parts.fragment


def _is_protected(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme == "https" or bool(_OWN_HOSTS.fullmatch(parts.hostname or ""))


def _values(row: TokenIssuer) -> dict[str, Any]:
    return {
        "cluster": row.cluster.name if row.cluster else "all clusters",
        "url": row.url,
        "jwks_url": row.jwks_url,
        "audiences": row.audiences,
        "claim": row.claim,
        "required_claims": row.required_claims,
    }
