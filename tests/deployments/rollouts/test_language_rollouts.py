"""A rollout of a language model is judged by the tokens that its pods count."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from deployments.changes.services import drafts
from deployments.guards.domain.limits import GuardLimit
from deployments.models import Deployment, Revision, Rollout, RolloutEvent
from deployments.rollouts.services import gpu_facts, reconcile
from deployments.states import RolloutPhase
from fleet.models import MetricSample, Pod, Workload
from fleet.telemetry.domain.counters import CounterSums
from portal.accounts.models import User
from tests.deployments.canaries import view
from tests.deployments.guarded_rollouts import begin
from tests.deployments.world import World
from tests.page import page

SignIn = Callable[[User], Client]
TTFT: list[dict[str, Any]] = [{"metric": "time_to_first_token", "max_ratio": 1.25}]


def send(world: World, name: str, n: int, *, first_token_us: int) -> None:
    """A reading of one pod: so many more answers of 100 tokens."""
    workload, at = Workload.objects.get(name=name), world.clock.at
    pod, is_new = Pod.objects.get_or_create(
        cluster_id=world.cluster_id,
        uid=name,
        defaults={
            "workload": workload,
            "namespace": "vision",
            "name": name,
            "created_at": at,
            "ready_at": at - timedelta(hours=1),
        },
    )
    if is_new:
        MetricSample.objects.create(pod=pod, at=at - timedelta(seconds=1))
    last = MetricSample.objects.filter(pod=pod).latest("at")
    old = CounterSums(**{name: getattr(last, name) for name in asdict(CounterSums())})
    new = old + CounterSums(
        request_success=n,
        inference_count=n,
        request_duration_us=n * 2_000_000,
        generation_tokens=100 * n,
        first_tokens=n,
        first_token_us=n * first_token_us,
        later_tokens=99 * n,
        later_token_us=99 * n * 20_000,
    )
    MetricSample.objects.create(pod=pod, at=at, **asdict(new))


def interval(world: World, deployment: Deployment, *, first_token_us: int) -> None:
    world.clock.move(5)
    send(world, "detector-r1", 450, first_token_us=300_000)
    send(world, "detector-r2", 50, first_token_us=first_token_us)
    reconcile.advance(rollout_id=deployment.rollouts.get().pk)


def test_a_candidate_whose_first_token_comes_late_is_aborted(world: World) -> None:
    deployment, rollout = begin(world, guards=TTFT, is_calm=True)
    interval(world, deployment, first_token_us=300_000)
    first = view(world, rollout).guards[1]
    for _ in range(20):
        interval(world, deployment, first_token_us=600_000)

    aborted = RolloutEvent.objects.get(kind="aborting")
    assert (first.guard, first.stable, first.candidate) == (
        "Time to first token",
        "300 ms",
        "300 ms",
    )
    assert aborted.message.startswith("aborted: time to first token: worse than allowed")


def test_first_tokens_of_a_pod_that_warms_up_are_not_judged(world: World) -> None:
    deployment, rollout = begin(world, guards=TTFT, is_calm=True, warmup_seconds=3600)
    for _ in range(30):
        interval(world, deployment, first_token_us=500_000)

    assert Rollout.objects.get().phase == RolloutPhase.RUNNING
    assert view(world, rollout).guards[1].candidate == "not known"


@pytest.mark.parametrize(
    ("engine", "counted"),
    [("kserve-vllm", 1.0), ("kserve-tensorrt-llm", 1.0), ("kserve-sglang", None), ("triton", None)],
)
def test_only_some_servers_count_aborted_requests(
    world: World, engine: str, counted: float | None
) -> None:
    _, rollout = begin(world)
    revision: Revision = rollout.candidate_revision
    revision.spec = {**revision.spec, "engine": engine}
    limit = GuardLimit(metric="aborted_requests", max_ratio=1.25)

    assert gpu_facts.facts_of(rollout, revision, (limit,)).aborts_counted == counted


def as_language_model(deployment: Deployment) -> None:
    stable = deployment.stable_revision
    assert stable is not None
    Revision.objects.filter(pk=stable.pk).update(spec={**stable.spec, "engine": "kserve-vllm"})
    deployment.refresh_from_db()


def test_a_language_model_has_its_own_guards_unless_the_plan_states_some(world: World) -> None:
    deployment = world.serving()
    stated = {"guards": TTFT}

    assert drafts._with_default_guards(deployment, {}) == {}
    as_language_model(deployment)
    own = drafts._with_default_guards(deployment, {"drain_seconds": 20})

    assert [guard["metric"] for guard in own["guards"]] == [
        "error_rate",
        "lost_requests",
        "time_to_first_token",
        "inter_token_latency",
    ]
    assert own["drain_seconds"] == 20
    assert drafts._with_default_guards(deployment, stated) == stated


def test_the_form_offers_guards_on_tokens_to_language_models_only(
    world: World, signed_in: SignIn
) -> None:
    deployment = world.serving()
    client, place = signed_in(world.member), "/vision/deployments/detector/canary"

    plain = client.get(place)
    as_language_model(deployment)
    language = client.get(place)

    assert "Time to first token" not in page(plain).text
    assert "Time to first token" in page(language).text
    filled = {
        field.attributes["name"]: field.attributes.get("value", "")
        for field in page(language).all("input")
        if field.attributes.get("name", "").endswith("-max_ratio")
    }
    assert filled["time_to_first_token-max_ratio"] == "1.25"
    assert (filled["aborted_requests-max_ratio"], filled["latency_mean-max_ratio"]) == ("", "")
