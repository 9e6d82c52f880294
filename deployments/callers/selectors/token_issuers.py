"""Identity providers whose tokens gateways accept."""

from __future__ import annotations

from django.db.models import F, Q, QuerySet

from deployments.models import ChangeRequest, Revision, TokenIssuer
from deployments.states import ChangeState

_COMING = (ChangeState.SUBMITTED, ChangeState.APPROVED, ChangeState.APPLYING)


def registered() -> QuerySet[TokenIssuer]:
    rows = TokenIssuer.objects.filter(removed_at=None).select_related("cluster", "created_by")
    return rows.order_by("name")


def of_cluster(cluster_id: int) -> QuerySet[TokenIssuer]:
    return registered().filter(Q(cluster=None) | Q(cluster=cluster_id))


def users_of(issuer: TokenIssuer) -> list[str]:
    """Deployments that take its tokens, or will once a request is decided."""
    coming = ChangeRequest.objects.filter(state__in=_COMING).values("revision")
    serves = Q(pk=F("deployment__stable_revision")) | Q(pk=F("deployment__candidate_revision"))
    rows = Revision.objects.filter(
        serves | Q(pk__in=coming),
        deployment__is_retired=False,
        spec__network__token_issuer=issuer.name,
    ).select_related("deployment__team")
    return sorted({str(row.deployment) for row in rows})
