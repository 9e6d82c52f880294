"""What a deployment costs now, as a what-if starts from it."""

from __future__ import annotations

from decimal import Decimal

from deployments.advice.domain.what_if import Scenario
from deployments.manifests.selectors import rendering
from deployments.preflight.services import cost
from deployments.preflight.services.cost import SharesByCluster
from deployments.serving.selectors import deployments
from portal.accounts.models import User

_HUNDRED = Decimal(100)


def of_deployment(*, actor: User, label: str) -> Scenario | None:
    """`label` is team/name. The price is that of one replica, so its share is 100%; None when it is
    not known. Raises NotFound for what the actor cannot see.
    """
    team, _, name = label.partition("/")
    deployment = deployments.get_visible(actor=actor, team_slug=team, name=name)
    if deployment.stable_revision is None:
        return None
    spec = rendering.spec_of(deployment.stable_revision)
    share = cost.find_gpu_share(SharesByCluster().of(deployment.cluster_id), spec)
    if share is None or share.usd_per_hour_amount is None:
        return None
    return Scenario(
        usd_per_hour_amount=share.usd_per_hour_amount,
        replicas=Decimal(spec.min_replicas * spec.nodes),
        gpu_share_percent=_HUNDRED,
    )
