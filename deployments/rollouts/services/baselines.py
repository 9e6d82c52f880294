"""Make the baseline of a rollout: a revision with the version and the spec of the stable one."""

from __future__ import annotations

from django.db.models import Max

from deployments.manifests.selectors import baselines, rendering
from deployments.models import Revision, Rollout
from deployments.rollouts.selectors.snapshots import RolloutSnapshot
from portal.core import clock


def create(snapshot: RolloutSnapshot) -> Revision | None:
    """Create the baseline. None for a plan without one. Call inside the transaction that adds the candidate: no
    other request makes a revision meanwhile, because a deployment has one open request.
    """
    rollout = snapshot.rollout
    stable, deployment = rollout.stable_revision, rollout.deployment
    candidate = rendering.spec_of(rollout.candidate_revision)
    spec = baselines.spec_of(deployment, snapshot.plan, candidate)
    if spec is None:
        return None
    highest = deployment.revisions.aggregate(highest=Max("number"))["highest"]
    baseline = Revision.objects.create(
        deployment=deployment,
        number=highest + 1,
        version=stable.version,
        spec=spec.to_json(),
        baseline_of=stable,
        created_by=rollout.requested_by,
        created_at=clock.now(),
    )
    Rollout.objects.filter(pk=rollout.pk).update(baseline_revision=baseline)
    rollout.baseline_revision = baseline
    return baseline
