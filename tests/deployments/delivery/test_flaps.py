"""A deployment that is unready for a moment while a rollout moves traffic has no event of it."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.delivery.domain import health
from deployments.delivery.domain.health import GRACE_SECONDS, Health, HealthFacts
from deployments.delivery.domain.progress import WorkloadProgress
from deployments.models import Deployment, DeploymentEvent
from deployments.rollouts.services import actions
from deployments.states import DeploymentState
from portal.audit.models import AuditEvent
from tests.deployments.canaries import serve, start, view
from tests.deployments.world import World

pytestmark = pytest.mark.django_db
STEPS = [
    {"weight": 10, "soak_seconds": 0, "min_requests": 0},
    {"weight": 50, "soak_seconds": 0, "min_requests": 0},
]


def states() -> list[str]:
    rows = DeploymentEvent.objects.filter(kind="state").order_by("id")
    return [event.message for event in rows]


def promote(world: World) -> Deployment:
    """Promote to the second step, while the gateway takes its time with the route."""
    deployment, rollout = start(world, STEPS)
    serve(world, deployment, 10)
    world.cluster.accept_route = _forget_status  # type: ignore[method-assign]
    shown = view(world, rollout)
    actions.promote(actor=world.lead, rollout_id=rollout.pk, evidence_hash=shown.evidence_hash)
    return world.reconcile_now(deployment)


def _forget_status(route: dict[str, Any]) -> None:
    route.pop("status", None)


def accept(world: World) -> None:
    del world.cluster.accept_route
    for (kind, _, _), manifest in world.cluster.objects.items():
        if kind == "HTTPRoute":
            world.cluster.accept_route(manifest)


def test_a_promotion_writes_no_degraded_and_ready(world: World) -> None:
    deployment = promote(world)
    before = states()
    audited = AuditEvent.objects.filter(action="deployment.state").count()

    assert deployment.state == "ready"
    assert deployment.state_reason == "waiting for the gateway to accept the route"
    world.clock.move(GRACE_SECONDS - 1)
    accept(world)
    world.reconcile_now(deployment)

    assert (deployment.state, deployment.state_reason) == ("ready", "")
    assert states() == before == ["progressing: KServe is preparing it", "ready"]
    assert AuditEvent.objects.filter(action="deployment.state").count() == audited


def test_what_lasts_longer_is_an_event(world: World) -> None:
    deployment = promote(world)

    world.clock.move(GRACE_SECONDS)
    world.reconcile_now(deployment)

    assert deployment.state == "degraded"
    assert states()[-1] == "degraded: waiting for the gateway to accept the route"


def test_a_revision_that_fails_is_degraded_at_once() -> None:
    fails = WorkloadProgress("load", "crashes", "the model crashed", is_failing=True)
    facts = HealthFacts(fails, None, "", was_ready=True, is_late=False, is_settling=True)

    verdict = health.assess(facts, now=DeploymentState.READY)

    assert verdict == Health(DeploymentState.DEGRADED, "the model crashed")


def test_a_route_that_is_refused_is_degraded_at_once() -> None:
    serves = WorkloadProgress("ready")
    facts = HealthFacts(
        serves, None, "", was_ready=True, is_late=False, route_refusal="refused", is_settling=True
    )

    verdict = health.assess(facts, now=DeploymentState.READY)

    assert verdict == Health(DeploymentState.DEGRADED, "refused")


def test_without_a_rollout_there_is_no_grace(world: World) -> None:
    deployment = world.serving()

    world.cluster.make_ready("detector-r1", is_ready=False)
    world.reconcile_now(deployment)

    assert deployment.state == "degraded"
