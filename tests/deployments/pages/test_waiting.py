"""Deployments and batch jobs tell the fleet page which of them wait for GPUs."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from deployments.models import AdviceItem, BatchJob, Deployment
from deployments.pages.selectors.waiting import DeploymentWaits
from deployments.serving.domain.observed_revision import ObservedRevision, to_column
from deployments.serving.domain.queue_state import QueueState
from fleet.capacity.domain.waiting import QueuePlace, Waiter, WaiterKind
from fleet.capacity.services.wait_sources import IdleDeployment
from portal.core import clock
from tests.deployments.world import World

WAITS = DeploymentWaits()


def test_places_are_those_that_were_observed(world: World) -> None:
    deployment = world.serving()
    second = QueueState("serving", "pending", waiting=1, position=2, why="insufficient quota")
    admitted = QueueState("serving", "admitted")
    observed = {
        1: ObservedRevision(since=clock.now(), queue=admitted),
        2: ObservedRevision(since=clock.now(), queue=second),
    }
    Deployment.objects.update(observed=to_column(observed))
    keys = [(deployment.cluster_id, "vision", f"detector-r{number}") for number in (1, 2, 3)]

    places = WAITS.find_places([*keys, (deployment.cluster_id, "vision", "other")])

    assert places == {keys[1]: QueuePlace(queue="serving", position=2, why="insufficient quota")}


def test_a_batch_job_that_waits_in_its_queue_is_listed(world: World) -> None:
    state = QueueState("training", "pending", waiting=2, position=1, why="needs 2 GPUs")
    queued, *_ = [
        BatchJob.objects.create(
            team=world.team,
            name=name,
            version=world.version1,
            cluster_id=world.cluster_id,
            requester=world.member,
            created_at=clock.now(),
            started_at=clock.now(),
            state="running",
            queue_state=waits,
            pods={"instance_type": "g5.xlarge", "queue": queue},
            input="s3://slipway-models/batch/vision/in.jsonl",
            output=f"s3://slipway-models/batch/vision/{name}/",
        )
        for name, waits, queue in [
            ("nightly", state.to_json(), "training"),
            ("other", None, "training"),
            ("free", None, ""),
        ]
    ]

    assert WAITS.list_queued_jobs() == [
        Waiter(
            kind=WaiterKind.BATCH_JOB,
            cluster_id=world.cluster_id,
            cluster_name=queued.cluster.name,
            team_slug="vision",
            name="nightly",
            is_visible=True,
            resource="nvidia.com/gpu",
            units=1,
            pods=2,
            since=clock.now(),
            instance_types=("g5.xlarge",),
            place=QueuePlace(queue="training", position=1, why="needs 2 GPUs"),
        )
    ]


def test_idle_deployments_are_those_with_open_advice_to_stop(world: World) -> None:
    deployment = world.serving()
    item = AdviceItem.objects.create(
        team=world.team,
        deployment=deployment,
        subject="vision/detector",
        kind="idle",
        message="Stop it.",
        formula="",
        risk="low",
        risk_reason="",
        cost_amount=Decimal(10),
        saving_amount=Decimal(10),
        first_seen_at=clock.now() - timedelta(days=2),
        computed_at=clock.now(),
    )
    idle = IdleDeployment(deployment.cluster_id, "vision", "detector", 9)

    assert WAITS.list_idle([deployment.cluster_id]) == [idle]
    assert WAITS.list_idle([]) == []
    AdviceItem.objects.filter(pk=item.pk).update(state="snoozed")
    assert WAITS.list_idle([deployment.cluster_id]) == []
