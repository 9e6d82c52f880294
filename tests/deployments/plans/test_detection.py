"""The plan form states what each step can find, by the traffic of the last day."""

from __future__ import annotations

from datetime import timedelta

import pytest
from rest_framework.test import APIClient

from deployments.guards.domain.betting import power
from deployments.guards.domain.betting.power import PowerSetting, PowerTraffic
from deployments.guards.domain.betting.rates import RateLimit
from deployments.plans.domain import detection
from deployments.plans.domain.detection import ExpectedTraffic
from deployments.plans.domain.rollout_plan import PlanKind, PlanSettings
from fleet.models import Workload, WorkloadMinute
from fleet.telemetry.selectors import daily
from fleet.telemetry.selectors.daily import DayTraffic
from tests.deployments.guarded_rollouts import calm_hour
from tests.deployments.plans.test_plan_form import URL, SignIn
from tests.deployments.world import World

DAY = ExpectedTraffic(per_second=100.0, requests=8_640_000, failures=86_400)
LATENCY_ONLY = PlanSettings.model_validate({"guards": [{"metric": "latency_mean", "max": 40}]})
STEPS = [
    {"weight": 5, "soak_seconds": 600, "min_requests": 0},
    {"weight": 50, "soak_seconds": 1800, "min_requests": 0},
]


def test_it_is_what_the_tests_of_the_rollout_find() -> None:
    settings = PlanSettings()
    level = settings.analysis.alpha / settings.guards.tests
    setting = PowerSetting(RateLimit(ratio=1.25), level, 60.0)
    traffic = PowerTraffic(100.0, 0.05, 0.01)

    found = detection.estimate_step(settings, DAY, weight=5, seconds=3600)

    assert found is not None
    assert found.times == power.smallest_regression(traffic, setting, seconds=3600)
    assert found.seconds == power.seconds_to_find(traffic, setting, times=found.times)
    assert found.seconds <= 3600


def test_more_traffic_and_more_time_find_less() -> None:
    def times(weight: int, seconds: int) -> float:
        found = detection.estimate_step(PlanSettings(), DAY, weight=weight, seconds=seconds)
        assert found is not None
        return found.times

    assert times(5, 1200) > times(50, 1200) > times(50, 7200) > 1.25


@pytest.mark.parametrize(
    ("settings", "weight", "seconds"),
    [
        (PlanSettings(), 5, 5),
        (PlanSettings(), 0, 3600),
        (PlanSettings(), 100, 3600),
        (LATENCY_ONLY, 5, 3600),
    ],
    ids=["too short", "no traffic", "no stable side", "no guard on errors"],
)
def test_it_is_not_stated_where_nothing_is_found(
    settings: PlanSettings, weight: int, seconds: int
) -> None:
    assert detection.estimate_step(settings, DAY, weight=weight, seconds=seconds) is None


def test_a_shadow_gets_copies_beside_all_requests() -> None:
    shadow = PlanSettings(kind=PlanKind.SHADOW)

    found = detection.estimate_step(shadow, DAY, weight=100, seconds=1200)
    half = detection.estimate_step(PlanSettings(), DAY, weight=50, seconds=1200)

    assert found is not None
    assert half is not None
    assert found.times < half.times, "both sides have all of the requests"


def test_without_a_failure_in_the_day_one_more_may_fail() -> None:
    assert ExpectedTraffic(1.0, 200, 0).error_ratio == 1 / 200
    assert ExpectedTraffic(1.0, 1, 1).error_ratio == 0.5


def _minutes(world: World, *, minutes: int, failures: int = 0, ago_hours: float = 1.0) -> None:
    workload = Workload.objects.get(name="detector-r1")
    begin = world.clock.at.replace(second=0, microsecond=0) - timedelta(hours=ago_hours)
    WorkloadMinute.objects.bulk_create(
        WorkloadMinute(
            workload=workload,
            start=begin + timedelta(minutes=minute),
            request_success=6000 - failures,
            request_failure=failures,
            observed_ms=60_000,
        )
        for minute in range(minutes)
    )


def _last_day(world: World) -> DayTraffic | None:
    return daily.last_day(cluster_id=world.cluster_id, namespace="vision", names=["detector-r1"])


def test_the_last_day_is_what_was_read_of_all_revisions(world: World) -> None:
    deployment = world.serving()
    assert _last_day(world) is None
    _minutes(world, minutes=10, failures=60, ago_hours=25)
    assert _last_day(world) is None, "that was yesterday"
    _minutes(world, minutes=10, failures=60)

    assert _last_day(world) == DayTraffic(requests=60_000, failures=600, seconds=600)
    client = APIClient()
    client.force_authenticate(world.member)
    steps = client.post(
        f"/api/v1/deployments/{deployment.pk}/rollout-figures", {"steps": STEPS}, format="json"
    ).json()["steps"]
    expected = [
        detection.estimate_step(
            PlanSettings(),
            ExpectedTraffic(100.0, 60_000, 600),
            weight=step["weight"],
            seconds=step["soak_seconds"],
        )
        for step in STEPS
    ]
    assert [step["smallest_regression"] for step in steps] == [
        found.times if found else None for found in expected
    ]
    assert [step["detection_seconds"] for step in steps] == [
        found.seconds if found else None for found in expected
    ]
    assert steps[1]["smallest_regression"] is not None


def test_blocks_are_as_long_as_those_of_a_rollout_that_begins_now(world: World) -> None:
    deployment = world.serving()
    _minutes(world, minutes=10, failures=60)
    client = APIClient()
    client.force_authenticate(world.member)
    url = f"/api/v1/deployments/{deployment.pk}/rollout-figures"

    def smallest() -> float:
        answer = client.post(url, {"steps": STEPS}, format="json").json()
        times: float = answer["steps"][1]["smallest_regression"]
        return times

    def expected(block_seconds: float) -> float:
        day = ExpectedTraffic(100.0, 60_000, 600)
        found = detection.estimate_step(
            PlanSettings(), day, weight=50, seconds=1800, block_seconds=block_seconds
        )
        assert found is not None
        return found.times

    assert smallest() == expected(60.0), "without a history"
    calm_hour(world)
    assert smallest() == expected(30.0) < expected(60.0), "no failure to tell calm from bursts"


def test_the_form_says_what_each_step_finds_or_that_it_is_not_known(
    world: World, signed_in: SignIn
) -> None:
    world.serving(min_replicas=4, max_replicas=4)
    browser = signed_in(world.member)

    unknown = browser.get(URL).content.decode()
    _minutes(world, minutes=30, failures=60)
    known = browser.get(URL).content.decode()

    assert "What each step detects is not known" in unknown
    assert "times stable's error rate" not in unknown
    assert "times stable's error rate" in known
    assert "1 replica;" in known
    assert "4 replicas;" in known
