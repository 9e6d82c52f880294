"""One reading of a deployment on every page; what is stopped answers nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client

from deployments.lifecycle.services import stop
from deployments.models import Deployment, Rollout
from deployments.rollouts.selectors import rollouts
from deployments.rollouts.services import actions as rollout_services
from deployments.serving.selectors import deployments, statistics
from fleet.models import MetricSample, Pod, Workload, WorkloadMinute
from portal.accounts.models import User
from tests import page as pages
from tests.deployments.canaries import serve
from tests.deployments.signed_in import start_canary
from tests.deployments.world import World

ONE = "/vision/deployments/detector"
SignIn = Callable[[User], Client]


def answered(world: World, name: str = "detector-r1", requests: int = 11_280) -> None:
    """So many requests over the last five minutes, as minutes and as readings of a pod that differ
    a little, as they do in life.
    """
    workload, at = Workload.objects.get(name=name), world.clock.at
    this_minute = at.replace(second=0, microsecond=0)
    for ago in range(5):
        WorkloadMinute.objects.create(
            workload=workload,
            start=this_minute - timedelta(minutes=ago),
            request_success=requests // 5,
            request_duration_us=requests // 5 * 4000,
            observed_ms=60_000,
        )
    pod = Pod.objects.create(
        cluster_id=world.cluster_id,
        workload=workload,
        namespace="vision",
        name=name,
        uid=name,
        created_at=at,
        ready_at=at - timedelta(hours=1),
    )
    for seconds, count in ((290, 0), (5, requests + 500)):
        MetricSample.objects.create(
            pod=pod,
            at=at - timedelta(seconds=seconds),
            request_success=count,
            request_duration_us=count * 4000,
        )


def shown_rates(client: Client) -> list[str]:
    """Of the tile at home, of the row there, of the list, and of the overview."""
    home, listed = (
        pages.page(client.get(address)) for address in ("/vision", "/vision/deployments")
    )
    overview = pages.page(client.get(ONE))
    rows = [next(row["req/s"] for row in shown.rows if "req/s" in row) for shown in (home, listed)]
    tiles = [shown.terms("Requests")[0].removesuffix(" /s") for shown in (home, overview)]
    return [tiles[0], *rows, tiles[1]]


def test_home_list_and_overview_show_the_same_rate(world: World, signed_in: SignIn) -> None:
    deployment = world.serving()
    answered(world)
    rate = statistics.figures_of([deployment])[deployment.pk].requests_per_second
    assert rate is not None

    assert shown_rates(signed_in(world.viewer)) == [f"{rate:.1f}"] * 4


def stopped(world: World) -> Deployment:
    deployment = world.serving(environment="staging")
    answered(world)
    stop.stop(actor=world.member, deployment_id=deployment.pk)
    deployment.refresh_from_db()
    return deployment


@pytest.mark.parametrize("is_observed", [False, True])
def test_what_is_stopped_answers_nothing_anywhere(
    world: World, signed_in: SignIn, is_observed: bool
) -> None:
    deployment = stopped(world)
    if is_observed:
        world.reconcile_now(deployment)
    client = signed_in(world.viewer)

    assert shown_rates(client) == ["0.0"] * 4
    for address in (ONE, "/vision", "/vision/deployments"):
        shown = pages.page(client.get(address))
        text = shown.text
        assert "Ready" not in [pill.text for pill in shown.all("span")]
        assert ("Stopped" if is_observed else "Stopping") in text
        assert "— 100%" not in text
        assert "all traffic to stable" not in text
    [revision] = deployments.revisions_of(deployment)
    assert (revision.requested_weight, revision.is_ready, revision.reason) == (0, False, "Stopped")


def test_the_api_says_the_same_of_what_is_stopped(world: World, signed_in: SignIn) -> None:
    deployment = stopped(world)
    world.reconcile_now(deployment)

    stats = statistics.by_revision(deployment)

    assert stats.total is not None
    assert (stats.total.requests_per_second, stats.total.pods) == (0.0, 0)


def test_after_a_restart_the_state_is_not_known_until_observed(
    world: World, signed_in: SignIn
) -> None:
    deployment = stopped(world)
    Deployment.objects.filter(pk=deployment.pk).update(is_stopped=False)
    world.clock.move(600)

    assert shown_rates(signed_in(world.viewer))[3] == "not known"


def test_steps_that_were_skipped_do_not_read_passed(world: World, signed_in: SignIn) -> None:
    deployment, rollout = start_canary(world)
    shown = rollouts.view_of(actor=world.lead, rollout=rollout)
    rollout_services.promote_fully(
        actor=world.lead, rollout_id=rollout.pk, evidence_hash=shown.evidence_hash
    )
    for _ in range(4):
        world.clock.move(30)
        world.reconcile_now(deployment)
    rollout = Rollout.objects.get()

    page = signed_in(world.viewer).get(f"{ONE}/rollout").content.decode()

    view = rollouts.view_of(actor=world.lead, rollout=rollout)
    assert rollout.phase == "completed"
    assert [step.state for step in view.steps] == ["left", "skipped"]
    assert "skipped: promoted fully" in page
    assert "left early" in page
    assert "passed" not in page


def test_steps_that_ran_to_their_end_passed(world: World) -> None:
    deployment, rollout = start_canary(world)
    for weight in (10, 50):
        world.clock.move(61)
        serve(world, deployment, weight)
        rollout.refresh_from_db()
        shown = rollouts.view_of(actor=world.lead, rollout=rollout)
        rollout_services.promote(
            actor=world.lead, rollout_id=rollout.pk, evidence_hash=shown.evidence_hash
        )
        world.reconcile_now(deployment)

    view = rollouts.view_of(actor=world.lead, rollout=Rollout.objects.get())

    assert [step.state for step in view.steps] == ["done", "done"]
