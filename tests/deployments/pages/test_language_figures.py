"""The tokens of a language model on its page and by REST; other models have none."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from rest_framework.test import APIClient

from fleet.models import MetricSample, Pod, Workload
from portal.accounts.models import User
from tests.deployments.world import World
from tests.page import page

ONE = "/vision/deployments/detector"
SignIn = Callable[[User], Client]
pytestmark = pytest.mark.django_db


def read(world: World, *, seconds_ago: int, answers: int, running: int | None) -> None:
    """Each answer: 20 prompt tokens, 11 tokens, 200 ms to the first, 30 ms between two."""
    at = world.clock.at - timedelta(seconds=seconds_ago)
    pod, _ = Pod.objects.get_or_create(
        cluster_id=world.cluster_id,
        uid="pod-1",
        defaults={
            "namespace": "vision",
            "name": "detector-r1-x",
            "workload": Workload.objects.get(name="detector-r1"),
            "created_at": at,
            "ready_at": at - timedelta(hours=1),
        },
    )
    MetricSample.objects.create(
        pod=pod,
        at=at,
        request_success=answers,
        request_duration_us=500_000 * answers,
        queue_duration_us=50_000 * answers,
        prompt_tokens=20 * answers,
        generation_tokens=11 * answers,
        first_tokens=answers,
        first_token_us=200_000 * answers,
        later_tokens=10 * answers,
        later_token_us=300_000 * answers,
        preemptions=answers // 100,
        pending_requests=4,
        running_requests=running,
        kv_cache_usage=None if running is None else 0.625,
        first_token_times=None if running is None else [[0.1, 0], [0.3, answers], [None, answers]],
    )


def test_the_page_shows_tokens_and_where_the_time_goes(world: World, signed_in: SignIn) -> None:
    world.serving()
    read(world, seconds_ago=70, answers=100, running=1)
    read(world, seconds_ago=10, answers=400, running=3)

    shown = page(signed_in(world.viewer).get(ONE))

    assert shown.terms("Time to first token") == ["200 ms", "mean, p95 290 ms, last 5 minutes"]
    assert shown.terms("Between tokens") == ["30.0 ms", "mean, last 5 minutes"]
    assert shown.terms("Generated tokens") == ["55.0 /s", "100.0/s prompt tokens"]
    assert shown.terms("KV cache used") == ["62%", "3 running, 4 waiting, 3 preempted"]
    for part in ("Queue50.0 ms", "First token150 ms", "Other tokens300 ms"):
        assert part in shown.text
    assert "Source: metrics of the language model server." in shown.text
    assert "turn on latency summaries" not in shown.text


def test_rest_gives_them_and_null_for_another_model(world: World) -> None:
    deployment = world.serving()
    client = APIClient()
    client.force_authenticate(world.viewer)
    path = f"/api/v1/deployments/{deployment.pk}/stats"
    read(world, seconds_ago=70, answers=100, running=1)
    read(world, seconds_ago=10, answers=400, running=3)

    language = client.get(path).json()["total"]["language"]

    assert language == {
        "prompt_tokens": 6000,
        "generation_tokens": 3300,
        "prompt_tokens_per_second": 100.0,
        "generation_tokens_per_second": 55.0,
        "time_to_first_token_ms": 200.0,
        "time_to_first_token_p95_ms": pytest.approx(290.0),
        "inter_token_ms": 30.0,
        "kv_cache_usage": 0.625,
        "running_requests": 3,
        "preemptions": 3,
    }
    MetricSample.objects.update(running_requests=None, kv_cache_usage=None, generation_tokens=0)
    assert client.get(path).json()["total"]["language"] is None


def test_the_page_of_another_model_has_no_tokens(world: World, signed_in: SignIn) -> None:
    world.serving()
    read(world, seconds_ago=70, answers=100, running=None)
    read(world, seconds_ago=10, answers=400, running=None)
    MetricSample.objects.update(generation_tokens=0)

    shown = page(signed_in(world.viewer).get(ONE))

    assert "first token" not in shown.text.lower()
    assert "Triton counters" in shown.text
