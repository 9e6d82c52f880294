"""The timeline of a deployment: grouped by request, filtered by kind, each entry with its links."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from deployments.changes.services import decisions, requests
from deployments.models import ChangeRequest, Deployment, DeploymentEvent
from deployments.serving.domain import event_meanings
from deployments.serving.domain.event_meanings import EventTopic
from deployments.serving.selectors import timeline
from portal.accounts.models import User
from tests.deployments.canaries import STEPS
from tests.deployments.world import World
from tests.page import Part, page
from tests.rollout_plans import AT_ONCE

ONE = "/vision/deployments/detector"
DASH = "\N{EN DASH}"
SignIn = Callable[[User], Client]


def entries_of(shown: Part) -> list[Part]:
    """The entries of the list, and not what they unfold."""
    outer = next(shown.part("timeline").all("ol"))
    return [child for child in outer.children if isinstance(child, Part)]


def note(deployment: Deployment, at: datetime, kind: str, message: str, who: str = "") -> None:
    DeploymentEvent.objects.create(
        deployment=deployment, at=at, kind=kind, message=message, actor_name=who
    )


def test_a_request_with_all_that_followed_is_one_entry(world: World, signed_in: SignIn) -> None:
    world.serving()

    (entry,) = entries_of(page(signed_in(world.viewer).get(f"{ONE}/timeline")))

    change = ChangeRequest.objects.get()
    assert entry.attributes["class"] == "ok"
    assert entry.link("Deployment of detector:1") == f"/approvals/{change.pk}"
    assert "Done" in entry.text
    assert "requested by member · approved by lead" in entry.text
    assert entry.link("r1") == f"{ONE}/revisions?to=1"
    events = next(entry.all("details"))
    count = DeploymentEvent.objects.count()
    assert next(events.all("summary")).text == f"{count} events"
    assert "deployment of detector:1 requested" in events.text
    assert "deployment approved" in events.text


def test_a_rollout_is_in_the_entry_of_its_request(world: World, signed_in: SignIn) -> None:
    deployment = world.serving()
    world.clock.move(60)
    change = requests.request_canary(
        actor=world.member,
        deployment_id=deployment.pk,
        version_id=world.version2.pk,
        steps=STEPS,
        plan=AT_ONCE,
    )
    world.approved(change)

    newest, oldest = entries_of(page(signed_in(world.viewer).get(f"{ONE}/timeline")))

    assert newest.attributes["class"] == "decision"
    assert newest.links["Rollout"] == f"{ONE}/rollout"
    assert "Canary of detector:2" in newest.links
    assert "r2 replaces r1" in newest.text
    assert "Rollout" not in oldest.links
    assert "r2 replaces r1" not in oldest.text


def test_what_the_machine_does_by_itself_is_one_line(world: World, signed_in: SignIn) -> None:
    deployment = world.serving()
    at = world.clock.at + timedelta(hours=1)
    at = at.replace(hour=9, minute=14, second=0)
    at += timedelta(days=1)
    for minute, kind in enumerate(("scheduled", "download", "load", "ready")):
        note(deployment, at + timedelta(minutes=2 * minute), kind, f"a pod: {kind}")
    note(deployment, at + timedelta(minutes=8), "caller key", "key of shop created", "member")

    key, noise, _ = entries_of(page(signed_in(world.viewer).get(f"{ONE}/timeline")))

    assert key.link("Callers") == f"{ONE}/callers"
    assert key.attributes["class"] == "decision"
    assert next(noise.all("summary")).text == f"4 machine events, 09:14{DASH}09:20"
    lines = list(next(noise.all("ol")).all("li"))
    kinds = ("ready", "load", "download", "scheduled")
    assert [f"a pod: {kind}" in line.text for line, kind in zip(lines, kinds, strict=True)] == [
        True
    ] * 4


@pytest.mark.parametrize(
    ("kind", "messages"),
    [
        ("requests", ["key of shop created"]),
        ("rollouts", ["paused"]),
        ("health", ["degraded: no pods"]),
        ("machine", ["progressing: loading"]),
        ("", ["key of shop created", "paused", "progressing: loading", "degraded: no pods"]),
        (
            "nonsense",
            ["key of shop created", "paused", "progressing: loading", "degraded: no pods"],
        ),
    ],
)
def test_the_timeline_is_filtered_by_kind(
    world: World, signed_in: SignIn, kind: str, messages: list[str]
) -> None:
    deployment = world.serving()
    DeploymentEvent.objects.all().delete()
    ChangeRequest.objects.update(finished_at=world.clock.at)
    at = world.clock.at + timedelta(minutes=1)
    note(deployment, at, "state", "degraded: no pods")
    note(deployment, at, "state", "progressing: loading")
    note(deployment, at, "rollout paused", "paused", "lead")
    note(deployment, at, "caller key", "key of shop created", "member")

    shown = page(signed_in(world.viewer).get(f"{ONE}/timeline?kind={kind}"))

    found = [
        next(message for message in messages if message in entry.text)
        for entry in entries_of(shown)
    ]
    assert found == messages


def test_a_filter_without_events_says_so(world: World, signed_in: SignIn) -> None:
    world.serving()

    part = page(signed_in(world.viewer).get(f"{ONE}/timeline?kind=rollouts")).part("timeline")

    assert "No such events." in part.text
    assert part.link("Show all") == "?"


def test_the_database_filters_as_the_domain_classifies(world: World) -> None:
    deployment = world.serving()
    DeploymentEvent.objects.all().delete()
    kinds = event_meanings.REQUEST_KINDS | event_meanings.HEALTH_KINDS
    for kind in (*kinds, "rollout started", "rollout alias", "ready", "queue", "unheard of"):
        note(deployment, world.clock.at, kind, "something")
    for message in ("ready", "ready: slowly", "degraded: no pods", "progressing", "stopped"):
        note(deployment, world.clock.at, "state", message)

    for topic in EventTopic:
        found = set(timeline.list_events(deployment, topic=topic).values_list("pk", flat=True))
        assert found == {
            event.pk
            for event in DeploymentEvent.objects.all()
            if event_meanings.find_topic(event.kind, event.message) == topic
        }


def test_a_group_that_began_before_the_page_says_so(world: World, signed_in: SignIn) -> None:
    deployment = world.serving()
    change = ChangeRequest.objects.get()
    ChangeRequest.objects.update(finished_at=None)
    for number in range(50):
        note(deployment, world.clock.at, "failed", f"failure {number}")
    client = signed_in(world.viewer)

    first = page(client.get(f"{ONE}/timeline"))
    second = page(client.get(f"{ONE}/timeline?page=2"))

    assert "Its first events are on the next page." in first.part(f"request-{change.pk}").text
    assert "Its first events" not in second.text
    assert "deployment of detector:1 requested" in second.part(f"request-{change.pk}").text


def test_the_number_of_queries_does_not_grow_with_the_events(
    world: World, signed_in: SignIn, django_assert_max_num_queries: Any
) -> None:
    deployment = world.serving()
    client = signed_in(world.viewer)
    client.get(f"{ONE}/timeline")
    with django_assert_max_num_queries(60) as few:
        client.get(f"{ONE}/timeline")
    for _ in range(6):
        change = requests.request_scale(
            actor=world.member, deployment_id=deployment.pk, min_replicas=2, max_replicas=2
        )
        decisions.withdraw(actor=world.member, change_id=change.pk)

    with django_assert_max_num_queries(60) as many:
        client.get(f"{ONE}/timeline")

    assert len(many) <= len(few)
