"""Larger batches and multi-model serving: from stored counters to the change request, the spec and the bill."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest
from django.test import Client

from deployments.advice.services import answers, refresh
from deployments.changes.selectors.subjects import deployment_of
from deployments.changes.services import requests
from deployments.models import AdviceItem, ChangeRequest, Deployment, ModelVersion
from deployments.preflight.domain.checks import DeployDraft
from deployments.states import AdviceState, ChangeState
from portal.accounts.models import User
from portal.core.errors import Conflict
from tests.deployments.advice import history
from tests.deployments.refusals import refused
from tests.deployments.second_model import make_classifier
from tests.deployments.world import World
from tests.page import page

SignIn = Callable[[User], Client]
pytestmark = pytest.mark.django_db
PARTS = {"weights": 700, "activations": 2000, "runtime": 450}
QUEUED = {
    "queue_duration_us": 1000 * 60_000,
    "compute_input_us": 1000 * 1_000,
    "compute_infer_us": 1000 * 18_000,
    "compute_output_us": 1000 * 1_000,
    "inference_count": 1000,
    "execution_count": 1000,
}


def test_larger_batches_from_the_counters_to_the_spec(world: World, signed_in: SignIn) -> None:
    _read_files(max_batch_size=8)
    off = {"batching": {"is_dynamic": False}}
    deployment = world.serving(min_replicas=3, max_replicas=3, **off)
    history.age(world, deployment)
    history.write(world, deployment, replicas=3, busy=0.6, counters=QUEUED)
    refresh.sweep()
    item = AdviceItem.objects.get(kind="larger-batches")
    # 1.8 busy replicas x 0.625 / 0.7 are two.
    assert item.saving_amount == Decimal("734.38")
    assert not AdviceItem.objects.filter(kind="fewer-replicas").exists()

    shown = page(signed_in(world.member).get("/advice")).text
    change = answers.request(actor=world.member, item_id=item.pk)

    assert "Larger batches" in shown
    assert "a request waits 60.0 ms and is executed in 20.0 ms" in shown
    assert "75% of a request's time in Triton" in shown
    assert change.kind == "canary"
    assert change.revision is not None
    assert change.revision.spec["batching"]["is_dynamic"] is True
    assert change.revision.spec["min_replicas"] == 2
    assert "Saves $734 a month, $8,813 a year" in change.comment
    deployment.refresh_from_db()
    assert deployment.candidate_revision is None, "nothing is applied without approval"
    world.approved(change)
    deployment.refresh_from_db()
    assert deployment.candidate_revision == change.revision


@pytest.mark.parametrize("field", ["queue_duration_us", "execution_count", "compute_infer_us"])
def test_counters_that_are_missing_are_no_queue(world: World, field: str) -> None:
    _read_files(max_batch_size=8)
    off = {"batching": {"is_dynamic": False}}
    deployment = world.serving(min_replicas=3, max_replicas=3, **off)
    history.age(world, deployment)
    missing = {field: 0, "compute_input_us": 0, "compute_output_us": 0}
    history.write(world, deployment, replicas=3, busy=0.6, counters={**QUEUED, **missing})

    refresh.sweep()

    assert not AdviceItem.objects.filter(kind__in=["larger-batches", "more-instances"]).exists()


def test_two_models_in_one_triton_from_the_page_to_the_bill(
    world: World, signed_in: SignIn
) -> None:
    host, guest = _pair(world)
    refresh.sweep()
    item = AdviceItem.objects.get(kind="multi-model")
    assert (item.deployment, item.saving_amount) == (guest, Decimal("734.38"))
    shown = page(signed_in(world.member).get("/advice")).text
    assert "Serve classifier:1 from vision/detector and then stop vision/small" in shown
    assert "/v2/models/classifier at the address of vision/detector" in shown

    change = answers.request(actor=world.member, item_id=item.pk)

    assert (change.kind, change.deployment) == ("canary", host)
    assert change.revision is not None
    [added] = change.revision.spec["additional_models"]
    assert (added["model"], added["version"]) == ("classifier", 1)
    assert "then stop vision/small" in change.comment
    item.refresh_from_db()
    assert (item.state, item.change) == (AdviceState.REQUESTED, change)
    refresh.sweep()
    assert AdviceItem.objects.filter(kind="multi-model").count() == 1, "once"

    # The host serves it, clients move, and what is then idle is stopped: only that lowers the bill.
    world.approved(change)
    host.refresh_from_db()
    assert host.candidate_revision == change.revision
    ChangeRequest.objects.filter(pk=change.pk).update(
        state=ChangeState.DONE, finished_at=world.clock.at
    )
    refresh.sweep()
    item.refresh_from_db()
    assert item.state == AdviceState.APPLIED
    world.clock.move(8 * 24 * 3600)
    history.write(world, guest, hours=8 * 24, requests=lambda _: 0)
    refresh.sweep()
    item.refresh_from_db()
    assert item.realised_amount == Decimal(0), "it still runs"
    kinds = set(AdviceItem.objects.filter(deployment=guest).values_list("kind", "state"))
    assert kinds == {("multi-model", "applied"), ("idle", "open")}
    world.clock.move(23 * 24 * 3600)
    history.write(world, host, hours=23 * 24)
    refresh.sweep()
    item.refresh_from_db()
    assert item.state == AdviceState.CHECKED
    # It ran 8 of the 30 days, less the hour of the change.
    assert Decimal(500) < (item.realised_amount or 0) < Decimal(560)


def test_a_snoozed_move_can_be_requested_and_one_that_no_longer_fits_cannot(world: World) -> None:
    _, guest = _pair(world)
    refresh.sweep()
    item = AdviceItem.objects.get(kind="multi-model")
    answers.snooze(actor=world.member, item_id=item.pk, days=7)
    refresh.sweep()
    item.refresh_from_db()
    assert item.state == AdviceState.SNOOZED
    model = ModelVersion.objects.filter(model__name="classifier")
    model.update(signature={"vram_parts_mib": {**PARTS, "weights": 30_000}})
    with refused(world, Conflict, "advice_gone"):
        answers.request(actor=world.member, item_id=item.pk)

    model.update(signature={"vram_parts_mib": PARTS})
    change = answers.request(actor=world.member, item_id=item.pk)

    assert change.deployment != guest


def test_a_model_that_is_served_elsewhere_is_not_advised_again(world: World) -> None:
    host, _ = _pair(world)
    stable = host.stable_revision
    assert stable is not None
    stable.spec = {**stable.spec, "additional_models": [{"model": "classifier", "version": 1}]}
    stable.save()

    refresh.sweep()

    assert not AdviceItem.objects.filter(kind="multi-model").exists()


def _pair(world: World) -> tuple[Deployment, Deployment]:
    """The deployment of another model has fewer requests."""
    return world.play("a pair of models", lambda: _serve_two(world))


def _serve_two(world: World) -> tuple[Deployment, Deployment]:
    host = world.serving()
    version = make_classifier(world)
    draft = world.draft(name="small")
    change = requests.request_deploy(
        actor=world.member,
        draft=DeployDraft(
            version.pk, draft.cluster_id, "small", draft.spec, environment=draft.environment
        ),
    )
    world.approved(change)
    guest = deployment_of(change)
    world.cluster.make_ready("small-r1")
    guest = world.reconcile_now(guest)
    _read_files()
    history.age(world, host)
    history.age(world, guest)
    history.write(world, host, requests=lambda _: 2000)
    history.write(world, guest, requests=lambda _: 1000)
    return host, guest


def _read_files(**signature: int) -> None:
    ModelVersion.objects.update(
        signature={"vram_parts_mib": PARTS, **signature}, vram_estimate_mib=3152
    )
