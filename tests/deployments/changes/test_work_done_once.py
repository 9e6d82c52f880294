"""What a request and a decision need is rendered and parsed once, and handed on."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.changes.selectors import evidence
from deployments.changes.services import decisions, new_request, requests
from deployments.manifests.domain.metadata import DEPLOYMENT_ID_LABEL
from deployments.manifests.selectors import rendered
from deployments.models import ChangeRequest, Deployment
from deployments.plans.domain import rollout_plan
from deployments.states import ChangeState
from fleet.models import Cluster
from portal.core.errors import QuotaExceeded
from tests.deployments.refusals import refused
from tests.deployments.world import World

STEPS = [{"weight": 20, "soak_seconds": 0, "min_requests": 0}]


def counted(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> list[int]:
    """One entry for each call."""
    real, calls = getattr(module, name), []

    def call(*args: Any, **options: Any) -> Any:
        calls.append(1)
        return real(*args, **options)

    monkeypatch.setattr(module, name, call)
    return calls


def fresh(change: ChangeRequest) -> ChangeRequest:
    return ChangeRequest.objects.get(pk=change.pk)


def canary(world: World, deployment: Deployment) -> ChangeRequest:
    return requests.request_canary(
        actor=world.member,
        deployment_id=deployment.pk,
        version_id=world.version2.pk,
        steps=STEPS,
    )


def test_a_canary_is_rendered_once_and_binds_to_that(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = world.serving()
    renders = counted(monkeypatch, rendered, "render")

    change = canary(world, deployment)

    assert len(renders) == 1
    assert change.evidence_hash == evidence.digest(fresh(change))


def test_a_change_of_replicas_is_rendered_once_and_binds_to_that(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = world.serving()
    renders = counted(monkeypatch, rendered, "render")

    change = requests.request_scale(
        actor=world.member, deployment_id=deployment.pk, min_replicas=2, max_replicas=3
    )

    assert len(renders) == 1
    assert change.evidence_hash == evidence.digest(fresh(change))


def test_a_new_deployment_binds_to_manifests_with_its_own_key(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its key is known after its row is written, so that it is rendered once more."""
    renders = counted(monkeypatch, rendered, "render")

    change = requests.request_deploy(actor=world.member, draft=world.draft())

    assert len(renders) == 2
    assert change.evidence_hash == evidence.digest(fresh(change))
    assert change.revision is not None
    workload = rendered.render_revision(change.revision).workload
    assert workload["metadata"]["labels"][DEPLOYMENT_ID_LABEL] == str(change.deployment_id)


def test_a_refused_deployment_leaves_nothing_and_the_next_one_is_made(world: World) -> None:
    with refused(world, QuotaExceeded):
        requests.request_deploy(
            actor=world.member, draft=world.draft(min_replicas=50, max_replicas=50)
        )

    change = requests.request_deploy(actor=world.member, draft=world.draft())

    assert Deployment.objects.get().pk == change.deployment_id


def test_a_request_binds_to_the_cluster_as_it_is_when_it_is_sent(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = world.serving()
    real = new_request.only_one

    def meanwhile(subject: Any) -> Any:
        Cluster.objects.filter(pk=deployment.cluster_id).update(gateway_name="other")
        subject.cluster.refresh_from_db()
        return real(subject)

    monkeypatch.setattr(new_request, "only_one", meanwhile)
    renders = counted(monkeypatch, rendered, "render")

    change = canary(world, deployment)

    assert len(renders) == 2
    assert change.evidence_hash == evidence.digest(fresh(change))


def test_an_approval_reads_the_plan_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    change = canary(world, world.serving())
    reads = counted(monkeypatch, rollout_plan, "read_stored")

    decided = decisions.approve(
        actor=world.lead, change_id=change.pk, evidence_hash=change.evidence_hash
    )

    assert decided.state == ChangeState.APPROVED
    assert len(reads) == 1
