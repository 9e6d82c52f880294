"""Check that the issuer whose tokens callers are to send is registered for the cluster."""

from __future__ import annotations

from typing import Final

from django.db.models import Q

from deployments.models import TokenIssuer
from deployments.preflight.domain.checks import Check
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.clusters.selectors.clusters import ClusterInfo

NAME: Final = "Token issuer"


def check_issuer(spec: ServingSpec, cluster: ClusterInfo) -> list[Check]:
    """Check that the issuer is registered for the cluster. Empty where callers send no tokens."""
    name = spec.network.token_issuer
    if not name:
        return []
    rows = TokenIssuer.objects.filter(
        Q(cluster=None) | Q(cluster=cluster.id), removed_at=None
    ).order_by("name")
    by_name = {row.name: row for row in rows}
    if name in by_name:
        issuer = by_name[name]
        detail = f"Callers send tokens of {issuer.url}; {issuer.claim} names them."
        return [Check(NAME, ok=True, detail=detail)]
    known = f"Use {', '.join(by_name)}, or ask" if by_name else "Ask"
    return [
        Check(
            NAME,
            ok=False,
            detail=f"No token issuer {name} is registered for {cluster.name}.",
            fix=f"{known} a platform admin to register it.",
        )
    ]
