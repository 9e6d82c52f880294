"""Identity providers whose tokens gateways accept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from django.db.models import F, Q, QuerySet

from deployments.access.domain import catalogue
from deployments.models import ChangeRequest, Revision, TokenIssuer
from deployments.states import ChangeState

_COMING = (ChangeState.SUBMITTED, ChangeState.APPROVED, ChangeState.APPLYING)


def list_registered() -> QuerySet[TokenIssuer]:
    rows = TokenIssuer.objects.filter(removed_at=None).select_related("cluster", "created_by")
    return rows.order_by("name")


def list_for_cluster(cluster_id: int) -> QuerySet[TokenIssuer]:
    return list_registered().filter(Q(cluster=None) | Q(cluster=cluster_id))


def users() -> Mapping[str, list[str]]:
    """Return the deployments by issuer that accept its tokens, or will once a request is decided. Empty for other
    issuers.
    """
    coming = ChangeRequest.objects.filter(state__in=_COMING).values("revision")
    serves = Q(pk=F("deployment__stable_revision")) | Q(pk=F("deployment__candidate_revision"))
    rows = Revision.objects.filter(
        serves | Q(pk__in=coming),
        deployment__is_retired=False,
        spec__network__access__in=catalogue.names_with_issuer(),
    ).select_related("deployment__team")
    named: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        named[row.spec["network"]["token_issuer"]].add(str(row.deployment))
    return defaultdict(list, {name: sorted(listed) for name, listed in named.items()})
