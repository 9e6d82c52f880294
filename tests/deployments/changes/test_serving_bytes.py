"""The bytes that are served are those that were approved: compared before every start, and while it
serves.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from deployments.changes.selectors import evidence
from deployments.changes.selectors.subjects import deployment_of
from deployments.changes.services import decisions, requests
from deployments.delivery.services import serving_watch
from deployments.lifecycle.services import stop
from deployments.models import ChangeRequest, Deployment, DeploymentEvent, ModelVersion
from deployments.registry.domain import object_keys
from deployments.registry.gateways.object_store import StoreUnreachable
from portal.audit.models import AuditEvent
from portal.core.errors import Invalid
from portal.notifications.models import Notice
from tests.deployments.canaries import STEPS
from tests.deployments.refusals import refused
from tests.deployments.world import World

CHANGED = "The bucket no longer matches the approved version: "


def model_key(version: ModelVersion) -> str:
    return object_keys.model_file_key(version.repository_prefix, version.model.name, "model.onnx")


def overwrite(world: World, version: ModelVersion) -> str:
    key = model_key(version)
    world.store.overwrite(key)
    return key


def approve(world: World, change: ChangeRequest) -> ChangeRequest:
    """Without any worker yet."""
    decisions.approve(actor=world.lead, change_id=change.pk, evidence_hash=change.evidence_hash)
    return change


def state_of(deployment: Deployment) -> tuple[str, str]:
    deployment.refresh_from_db()
    return deployment.state, deployment.state_reason


def event_kinds(deployment: Deployment) -> list[str]:
    kinds = ("bytes differ", "bytes as approved")
    rows = DeploymentEvent.objects.filter(deployment=deployment, kind__in=kinds)
    return list(rows.order_by("id").values_list("kind", flat=True))


def test_an_object_overwritten_after_the_approval_is_never_started(world: World) -> None:
    change = approve(world, requests.request_deploy(actor=world.member, draft=world.draft()))
    key = overwrite(world, world.version1)

    world.work()

    deployment = deployment_of(change)
    assert world.cluster.names("InferenceService") == []
    state, reason = state_of(deployment)
    assert state == "degraded"
    assert reason.startswith(f"{CHANGED}{key} was overwritten. New pods can't start")
    assert event_kinds(deployment) == ["bytes differ"]
    assert AuditEvent.objects.filter(action="deployment.bytes_differ").count() == 1
    notice = Notice.objects.get(event="deployment.failing")
    assert (notice.subject, notice.path) == (
        "vision/detector: its serving files were changed",
        "/vision/deployments/detector",
    )


def test_restored_files_start_and_notify_once(world: World) -> None:
    change = approve(world, requests.request_deploy(actor=world.member, draft=world.draft()))
    key = overwrite(world, world.version1)
    world.work()
    for _ in range(3):
        world.reconcile_now(deployment_of(change))

    world.store.put_right(key)
    world.reconcile_now(deployment_of(change))
    serving_watch.sweep()
    world.cluster.make_ready("detector-r1")
    deployment = world.reconcile_now(deployment_of(change))

    assert (deployment.state, deployment.state_reason) == ("ready", "")
    assert event_kinds(deployment) == ["bytes differ", "bytes as approved"]
    assert deployment.bytes_problem == ""


@pytest.mark.parametrize("how", ["size", "gone", "added"])
def test_what_is_gone_or_was_added_stops_a_start_as_well(world: World, how: str) -> None:
    change = approve(world, requests.request_deploy(actor=world.member, draft=world.draft()))
    prefix, key = world.version1.repository_prefix, model_key(world.version1)
    if how == "size":
        world.store.sizes[key] += 1
    elif how == "gone":
        del world.store.sizes[key]
    else:
        # Triton loads the newest version directory that it finds.
        world.store.sizes[f"{prefix}detector/2/model.onnx"] = 10

    world.work()

    expected = {"size": "was overwritten", "gone": "was deleted", "added": "2/model.onnx was added"}
    assert expected[how] in state_of(deployment_of(change))[1]
    assert world.cluster.names("InferenceService") == []


def test_a_start_after_a_stop_compares_again(world: World) -> None:
    deployment = world.serving()
    Deployment.objects.update(environment="development")
    stop.stop(actor=world.member, deployment_id=deployment.pk)
    world.reconcile_now(deployment)
    assert world.cluster.names("InferenceService") == []
    change = requests.request_start(actor=world.member, deployment_id=deployment.pk)
    approve(world, change)
    overwrite(world, world.version1)

    world.work()

    assert world.cluster.names("InferenceService") == []
    assert CHANGED in state_of(deployment)[1]


def test_a_new_candidate_compares_its_own_version(world: World) -> None:
    deployment = world.serving()
    change = requests.request_canary(
        actor=world.member, deployment_id=deployment.pk, version_id=world.version2.pk, steps=STEPS
    )
    approve(world, change)
    overwrite(world, world.version2)

    world.work()

    assert world.cluster.names("InferenceService") == ["detector-r1"]
    assert state_of(deployment)[0] == "ready"
    assert deployment.observed["r2"]["message"].startswith(CHANGED)


def test_more_replicas_of_overwritten_bytes_are_not_started(world: World) -> None:
    deployment = world.serving()
    change = requests.request_scale(
        actor=world.member, deployment_id=deployment.pk, min_replicas=2, max_replicas=2
    )
    approve(world, change)
    overwrite(world, world.version1)
    before = list(world.cluster.writes)

    world.work()

    assert world.cluster.writes == before
    assert CHANGED in state_of(deployment)[1]


def test_a_request_over_overwritten_bytes_is_refused_before_submission(world: World) -> None:
    key = overwrite(world, world.version1)

    with refused(world, Invalid) as raised:
        requests.request_deploy(actor=world.member, draft=world.draft())

    assert f"The serving repository differs from the verified file: {key} was overwritten." in str(
        raised[0]
    )


def test_the_recorded_objects_are_part_of_what_is_approved(world: World) -> None:
    change = requests.request_deploy(actor=world.member, draft=world.draft())
    row = {**world.version1.laid_out[0], "version_id": "another"}
    ModelVersion.objects.filter(pk=world.version1.pk).update(
        laid_out=[row, *world.version1.laid_out[1:]]
    )

    digest = evidence.digest(ChangeRequest.objects.get(pk=change.pk))

    assert digest != change.evidence_hash


def test_a_version_without_a_record_starts_nowhere(world: World) -> None:
    change = approve(world, requests.request_deploy(actor=world.member, draft=world.draft()))
    ModelVersion.objects.update(laid_out=[])
    ChangeRequest.objects.update(evidence_hash=evidence.digest(fresh(change)))
    change.approvals.update(evidence_hash=evidence.digest(fresh(change)))

    world.work()

    assert world.cluster.names("InferenceService") == []
    assert "no record of detector:1" in state_of(deployment_of(change))[1]


def fresh(change: ChangeRequest) -> ChangeRequest:
    return ChangeRequest.objects.get(pk=change.pk)


def test_it_is_watched_while_it_serves(world: World) -> None:
    deployment = world.serving()
    assert serving_watch.sweep() == 1
    key = overwrite(world, world.version1)
    world.clock.move(serving_watch.EVERY.total_seconds() - 1)
    assert (serving_watch.sweep(), event_kinds(deployment)) == (0, [])

    world.clock.move(1)
    assert serving_watch.sweep() == 1
    deployment = world.reconcile_now(deployment)

    assert event_kinds(deployment) == ["bytes differ"]
    assert (deployment.state, key in deployment.state_reason) == ("ready", True)
    world.clock.move(serving_watch.EVERY.total_seconds())
    serving_watch.sweep()
    assert event_kinds(deployment) == ["bytes differ"]
    world.store.put_right(key)
    world.clock.move(serving_watch.EVERY.total_seconds())
    serving_watch.sweep()
    assert event_kinds(deployment) == ["bytes differ", "bytes as approved"]
    assert world.reconcile_now(deployment).state_reason == ""


def test_one_sweep_checks_a_few_versions_oldest_first(world: World) -> None:
    first = world.serving()
    change = requests.request_deploy(actor=world.member, draft=world.draft("second"))
    world.approved(change)

    assert [serving_watch.sweep(limit=1) for _ in range(3)] == [1, 1, 0]

    checked_at = Deployment.objects.order_by("pk").values_list("bytes_checked_at", flat=True)
    assert list(checked_at) == [world.clock.at, world.clock.at]
    world.clock.move(serving_watch.EVERY.total_seconds())
    Deployment.objects.filter(pk=first.pk).update(
        bytes_checked_at=world.clock.at - timedelta(days=1)
    )
    serving_watch.sweep(limit=1)
    first.refresh_from_db()
    assert first.bytes_checked_at == world.clock.at


def test_a_store_without_a_response_says_nothing_about_the_bytes(world: World) -> None:
    deployment = world.serving()
    world.store.fail_with = StoreUnreachable("down")

    assert serving_watch.sweep() == 0

    deployment.refresh_from_db()
    assert (deployment.bytes_checked_at, deployment.bytes_problem) == (None, "")
    assert event_kinds(deployment) == []


def test_stopped_deployments_are_not_watched(world: World) -> None:
    deployment = world.serving()
    Deployment.objects.update(environment="development")
    stop.stop(actor=world.member, deployment_id=deployment.pk)
    world.reconcile_now(deployment)

    assert serving_watch.sweep() == 0
