"""Requests of canaries whose baseline does not fit: GPUs, shares of the traffic, autoscaling."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.changes.services import requests
from deployments.models import ChangeRequest, Deployment, Revision
from deployments.plans.domain import rollout_plan
from deployments.preflight.selectors import quotas
from portal.core.definitions import Rejected
from portal.core.errors import Invalid, QuotaExceeded
from tests.deployments.rollouts.baselines import STEPS, THREE, WITH, go, request
from tests.deployments.world import World
from tests.rollout_plans import AT_ONCE


def test_its_gpus_count_from_the_request_on_and_are_named_where_they_do_not_fit(
    world: World,
) -> None:
    deployment = world.serving(**THREE)
    world.team.quota_gpus = 7
    world.team.save()
    before = ChangeRequest.objects.count()
    with pytest.raises(QuotaExceeded) as refused:
        requests.request_canary(
            actor=world.member,
            deployment_id=deployment.pk,
            version_id=world.version2.pk,
            steps=STEPS,
            plan={**AT_ONCE, **WITH},
        )
    assert "8 of 7 GPUs" in refused.value.message
    assert "2 of them for the baseline" in refused.value.message
    assert "leave out the baseline" in refused.value.message
    assert ChangeRequest.objects.count() == before

    world.team.quota_gpus = 8
    world.team.save()
    change = requests.request_canary(
        actor=world.member,
        deployment_id=deployment.pk,
        version_id=world.version2.pk,
        steps=STEPS,
        plan={**AT_ONCE, **WITH},
    )
    world.approved(change)
    assert _committed(world) == 8
    go(world)
    assert Deployment.objects.get().baseline_revision is not None
    assert _committed(world) == 8

    checks = {check["name"]: check for check in change.checks}
    assert "5 replicas of candidate and baseline" in checks["Capacity for the baseline"]["detail"]


def _committed(world: World) -> int:
    return quotas.committed_gpus(world.team, quotas.list_running(world.team))


@pytest.mark.parametrize(
    ("plan", "steps", "field", "fix"),
    [
        ({"kind": "shadow"}, STEPS[:2], "has_baseline", "Only a canary can have a baseline"),
        ({"kind": "blue-green"}, [], "has_baseline", "Only a canary can have a baseline"),
        (
            {},
            [{**STEPS[0], "weight": 51}],
            "steps",
            "Step 1: with 51% for the candidate no equal share is left for the baseline. Use at most 50%",
        ),
        ({}, [STEPS[2]], "steps", "The baseline never gets traffic"),
    ],
    ids=["shadow", "blue-green", "weight", "no-share"],
)
def test_a_plan_that_leaves_no_equal_share_is_refused(
    plan: dict[str, Any], steps: list[dict[str, Any]], field: str, fix: str
) -> None:
    with pytest.raises(Rejected) as refused:
        rollout_plan.check({**plan, "has_baseline": True}, steps)

    assert fix in refused.value.fields[field]


def test_an_autoscaled_side_is_refused(world: World) -> None:
    with pytest.raises(Invalid) as refused:
        request(world, spec={"min_replicas": 1, "max_replicas": 4})

    message = refused.value.fields["has_baseline"]
    assert "A baseline needs a fixed number of replicas" in message
    assert "the stable revision is scaled by hpa" in message
    assert ChangeRequest.objects.filter(kind="canary").count() == 0
    assert Revision.objects.count() == 1
