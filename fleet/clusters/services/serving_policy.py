"""Read and replace a cluster's serving policy. Existing revisions keep their server image."""

from __future__ import annotations

from django.db import transaction

from fleet.clusters.domain import serving_policy
from fleet.clusters.domain.serving_policy import ServingPolicy
from fleet.clusters.selectors import clusters
from fleet.models import Cluster
from portal.accounts import policy
from portal.accounts.policy import Actor
from portal.audit import trail
from portal.audit.actions import register as register_action
from portal.core import clock
from portal.core.errors import Invalid, NotFound

CHANGED = register_action("cluster.serving_changed", "changed the serving settings of cluster")


def get_policy(*, actor: Actor, cluster_id: int) -> ServingPolicy:
    policy.require_platform_admin(actor)
    return clusters.get_cluster(cluster_id).serving


def set_policy(*, actor: Actor, cluster_id: int, serving: ServingPolicy) -> None:
    """Replace the whole policy; repeating it changes nothing. Raises Invalid with the problems by field."""
    policy.require_platform_admin(actor)
    problems = serving_policy.problems(serving)
    if problems:
        details = "; ".join(f"{name}: {problem}" for name, problem in problems.items())
        raise Invalid(f"Nothing was changed. {details}", fields=problems)
    with transaction.atomic():
        cluster = Cluster.objects.select_for_update(no_key=True).filter(pk=cluster_id).first()
        if cluster is None:
            raise NotFound(f"Cluster {cluster_id} does not exist.")
        before, after = cluster.serving, serving.to_json()
        if before == after:
            return
        # The probe compares the gateway with the policy: the next sweep repeats it.
        Cluster.objects.filter(pk=cluster_id).update(
            serving=after,
            capabilities={**cluster.capabilities, "probed_at": ""} if cluster.capabilities else {},
            next_check_at=clock.now(),
        )
        trail.record(
            actor=actor,
            action=CHANGED,
            obj=cluster,
            before=before,
            after=after,
        )
