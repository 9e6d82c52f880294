"""A plan says before it is requested how long a slower candidate takes to be found."""

from __future__ import annotations

from typing import Any, Final

import pytest
from rest_framework.test import APIClient

from deployments.guards.domain.betting import e_process, power
from deployments.guards.domain.betting.blocks import CALM, BlockLengths
from deployments.guards.domain.betting.lanes import Claim, IntervalTrial
from deployments.plans.domain import detection
from deployments.plans.domain.rollout_plan import PlanSettings
from tests.deployments.guarded_rollouts import calm_hour
from tests.deployments.plans.test_plan_form import SIDE, URL, SignIn, plan_rows
from tests.deployments.world import World

P95_ONLY: Final = PlanSettings.model_validate(
    {"guards": [{"metric": "latency_p95", "max_ratio": 1.25}]}
)
ERRORS_ONLY: Final = PlanSettings.model_validate(
    {"guards": [{"metric": "error_rate", "max_ratio": 1.25}]}
)
LIMIT_ONLY: Final = PlanSettings.model_validate({"guards": [{"metric": "latency_mean", "max": 40}]})
STEPS: Final = [{"weight": 50, "soak_seconds": 3600, "min_requests": 0}]


@pytest.mark.parametrize("payoff", list(e_process.Payoff))
def test_one_block_fewer_does_not_reach_the_level(payoff: e_process.Payoff) -> None:
    sign, level = IntervalTrial(1, 1, e_process.SIGN_CHANCE), 0.01 / 3
    count = power.fewest_blocks(sign, level, payoff)

    claim = Claim()
    for _ in range(count - 1):
        claim = claim.bet_block(sign, payoff)
    assert claim.evidence < 1 / level
    assert claim.bet_block(sign, payoff).evidence >= 1 / level


def test_it_is_so_many_blocks_of_the_length_that_stable_asks_for() -> None:
    found = detection.estimate_latency(
        PlanSettings(), BlockLengths(means=300.0, is_from_history=True)
    )

    assert found == detection.LatencyDetection(300.0, blocks=15, is_from_history=True)
    assert found.seconds == 75 * 60
    calm = detection.estimate_latency(
        PlanSettings(), BlockLengths(means=CALM, is_from_history=True)
    )
    assert calm is not None
    assert calm.seconds == 75, "a block is one reading of 5 s"


def test_a_percentile_alone_needs_fewer_blocks_than_a_mean() -> None:
    found = detection.estimate_latency(P95_ONLY, BlockLengths(means=60.0))

    assert found == detection.LatencyDetection(60.0, blocks=9, is_from_history=False)


def test_a_percentile_is_read_every_ten_seconds_at_most() -> None:
    def seconds(means: float) -> float:
        found = detection.estimate_latency(
            P95_ONLY, BlockLengths(means=means, is_from_history=True)
        )
        assert found is not None
        return found.block_seconds

    assert [seconds(means) for means in (CALM, 5.0, 30.0, 300.0)] == [10.0, 30.0, 30.0, 300.0]


@pytest.mark.parametrize(
    ("weights", "per_second", "seconds"),
    [
        # Ten of the candidate at 5%, twenty of stable at 50%.
        ((5,), 0.1, 2000.0),
        ((5, 50), 0.1, 400.0),
        ((50, 100), 0.1, 400.0),
        ((5,), 10.0, 60.0),
        ((100,), 0.1, 60.0),
        ((5,), None, 60.0),
    ],
)
def test_a_block_waits_for_the_requests_that_it_needs(
    weights: tuple[int, ...], per_second: float | None, seconds: float
) -> None:
    found = detection.estimate_latency(
        PlanSettings(), BlockLengths(means=60.0), weights=weights, per_second=per_second
    )

    assert found is not None
    assert found.block_seconds == pytest.approx(seconds)
    assert found.is_for_requests is (seconds > 60)


@pytest.mark.parametrize("settings", [ERRORS_ONLY, LIMIT_ONLY], ids=["errors", "a fixed limit"])
def test_it_is_not_stated_where_no_time_is_compared(settings: PlanSettings) -> None:
    assert detection.estimate_latency(settings, BlockLengths()) is None


def test_the_api_answers_with_what_a_rollout_that_begins_now_would_take(world: World) -> None:
    deployment = world.serving()
    client = APIClient()
    client.force_authenticate(world.member)

    def latency() -> dict[str, Any]:
        url = f"/api/v1/deployments/{deployment.pk}/rollout-figures"
        found: dict[str, Any] = client.post(url, {"steps": STEPS}, format="json").json()["latency"]
        return found

    assert latency() == {
        "block_seconds": 60.0,
        "seconds": 900,
        "is_from_history": False,
        "is_for_requests": False,
    }
    calm_hour(world)
    assert latency() == {
        "block_seconds": 5.0,
        "seconds": 75,
        "is_from_history": True,
        "is_for_requests": False,
    }


def test_the_form_warns_where_the_steps_end_before(world: World, signed_in: SignIn) -> None:
    world.serving()
    browser = signed_in(world.member)

    def shown(soak_seconds: int) -> str:
        rows = plan_rows(world, **{"steps-0-soak_minutes": f"{soak_seconds / 60:.3f}"})
        del rows["latency_mean-dry_run"]
        return " ".join(browser.post(URL, rows, **SIDE).content.decode().split())

    short, long = shown(839), shown(840)
    assert "Latency is compared in blocks of 1 min, because too little of stable" in short
    assert "after 14 blocks (14 min) at the earliest" in short
    assert "The steps are shorter than that." in short
    assert "The steps are shorter than that." not in long
    calm_hour(world)
    after = shown(839)
    # A tenth of 18 requests a second is ten in 5.6 s.
    assert (
        "Latency is compared in blocks of 5.6 s, in which both sides get enough requests." in after
    )
    assert "after 14 blocks (1.3 min) at the earliest" in after
    assert "The steps are shorter than that." not in after
