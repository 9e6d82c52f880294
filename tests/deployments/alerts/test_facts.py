"""Each kind of alert from what the portal records."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from django.core.cache import cache

from deployments.alerts.services import sweep
from deployments.models import Alert, DeploymentHealth
from deployments.states import HealthVerdict
from fleet.models import BudgetAlert, GpuLease, MetricSample, Node, Workload, WorkloadHour
from tests.deployments.alerts.observed import alerts, told
from tests.deployments.ledger import spend
from tests.deployments.targets.traffic import counted, pod_of, record, set_target
from tests.deployments.world import World


def test_a_burning_target(world: World) -> None:
    world.clock.at = world.clock.at.replace(minute=30, second=30, microsecond=0)
    deployment = world.serving()
    record(world, deployment, range(120), good=95, bad=5)
    set_target(world, deployment)
    counted(world, deployment)

    sweep.sweep()

    row = Alert.objects.get()
    assert (row.kind, row.subject, row.path) == (
        "slo_burn",
        "Availability of vision/detector",
        "/vision/deployments/detector/targets",
    )
    # Without metrics it is not known whether it goes on.
    world.clock.move(1800)
    counted(world, deployment)
    sweep.sweep()
    assert Alert.objects.get().ended_at is None
    world.clock.move(3600)
    record(world, deployment, range(60), good=100)
    counted(world, deployment)
    sweep.sweep()
    assert Alert.objects.get().ended_at == world.clock.at


def test_waiting_requests(world: World) -> None:
    deployment = world.serving()
    pod = pod_of(world, deployment)
    for number in range(4):
        at = world.clock.at - timedelta(minutes=number)
        MetricSample.objects.create(pod=pod, at=at, pending_requests=11 + number)

    sweep.sweep()

    assert alerts() == [("queue_depth", "Queue of vision/detector", True)]
    assert (
        Alert.objects.get().message == "For 5 minutes at least 11 requests waited in each replica."
    )


def test_gpu_memory_and_idle_gpus(world: World) -> None:
    deployment = world.serving()
    pod = pod_of(world, deployment)
    node = Node.objects.all()[0]
    pod.node = node
    pod.save()
    workload = Workload.objects.get(name="detector-r1")
    Workload.objects.update(gpu_memory_peak_mib=24_000)
    GpuLease.objects.create(
        cluster=node.cluster,
        node=node,
        workload=workload,
        pod_uid=pod.uid,
        pod_name=pod.name,
        namespace=pod.namespace,
        team_slug="vision",
        share_ppm=1_000_000,
        started_at=world.clock.at,
        changed_at=world.clock.at,
    )
    hour = world.clock.at.replace(minute=0, second=0, microsecond=0)
    for number in range(1, 25):
        WorkloadHour.objects.create(
            workload=workload,
            start=hour - timedelta(hours=number),
            observed_ms=3_600_000,
            gpu_busy_ms=0,
        )

    sweep.sweep()

    messages = dict(Alert.objects.values_list("kind", "message"))
    assert messages == {
        "gpu_memory": "It has used 24,000 of 24,576 MiB (98%): a larger request may fail.",
        "idle_gpus": "It holds 1 GPU, busy less than 0.1% of the last 24 hours.",
    }


def test_budget_and_answers_are_listed_but_notified_by_their_own_events(world: World) -> None:
    deployment = world.serving()
    BudgetAlert.objects.create(
        team=world.team,
        month=world.clock.at.date().replace(day=1),
        threshold="100%",
        budget_amount=Decimal(5000),
        spent_amount=Decimal(5001),
        at=world.clock.at,
    )
    DeploymentHealth.objects.update_or_create(
        deployment=deployment,
        defaults={
            "golden_verdict": HealthVerdict.FAILED,
            "golden_message": "1 of 1 golden requests failed",
        },
    )

    sweep.sweep()

    assert sorted(alerts()) == [
        ("answers", "Answers of vision/detector", True),
        ("budget", "Budget of vision", True),
    ]
    assert told() == []
    # A larger budget is another one.
    type(world.team).objects.filter(pk=world.team.pk).update(monthly_budget_amount=9000)
    sweep.sweep()
    assert not Alert.objects.filter(kind="budget", ended_at=None).exists()


def test_a_day_that_cost_more_than_is_usual(world: World) -> None:
    cache.clear()
    deployment = world.serving()
    world.clock.at = world.clock.at.replace(hour=9)
    midnight = world.clock.at.replace(hour=0, minute=0, second=0, microsecond=0)
    for n in range(1, 12):
        spend(deployment, midnight - timedelta(days=n, hours=-3), "340" if n == 1 else "100")

    sweep.sweep()
    sweep.sweep()

    assert alerts() == [
        ("cost_anomaly", "Unusual cost of vision/detector", True),
        ("cost_anomaly", "Unusual cost of team vision", True),
    ]
    assert told() == [
        ("alert.opened", "Unusual cost of vision/detector"),
        ("alert.opened", "Unusual cost of team vision"),
    ]
    of_deployment, of_team = Alert.objects.order_by("id")
    day = midnight - timedelta(days=1)
    assert of_deployment.message == f"{day:%-d %B} cost $340; $100 was expected."
    assert of_deployment.path == "/vision/deployments/detector/cost"
    assert of_team.path == "/costs?team=vision&group=deployment&range=7d"
    # The next day is as usual.
    spend(deployment, midnight + timedelta(hours=3), "100")
    world.clock.move(86_400)
    sweep.sweep()
    assert [row.ended_at for row in Alert.objects.all()] == [world.clock.at] * 2


def test_a_day_that_cost_less_is_no_alert(world: World) -> None:
    cache.clear()
    deployment = world.serving()
    midnight = world.clock.at.replace(hour=0, minute=0, second=0, microsecond=0)
    for n in range(1, 12):
        spend(deployment, midnight - timedelta(days=n, hours=-3), "1" if n == 1 else "100")

    sweep.sweep()

    assert alerts() == []
