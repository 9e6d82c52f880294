"""The inbox, the bell and REST."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.test import Client
from rest_framework.test import APIClient

from deployments.alerts.domain.kinds import queue_depth
from deployments.models import Alert
from portal.accounts.models import Team, User
from tests.accounts import make_team
from tests.deployments.world import World
from tests.page import page

QUERIES = 11
SignIn = Callable[[User], Client]


def make(world: World, number: int = 0, team: Team | None = None, **more: Any) -> Alert:
    return Alert.objects.create(
        **{
            "team": team or world.team,
            "kind": "queue_depth",
            "key": f"deployment {number}",
            "subject": f"Queue of vision/detector{number}",
            "message": "Requests wait.",
            "path": "/vision/deployments/detector",
            "opened_at": world.clock.at,
            **more,
        }
    )


def test_the_bell_counts_open_alerts_of_ones_teams(world: World, signed_in: SignIn) -> None:
    make(world, 1)
    make(world, 2, ended_at=world.clock.at)
    make(world, 3, silenced_until=world.clock.at + timedelta(hours=1), silenced_by=world.lead)
    make(world, 4, silenced_until=world.clock.at - timedelta(hours=1), silenced_by=world.lead)
    make(world, 5, team=Team.objects.get(slug="nlp"))

    def bell(user: User) -> str:
        content = signed_in(user).get("/vision/models").content.decode()
        return content.split('aria-label="Alerts: ')[1].split('"')[0]

    assert bell(world.viewer) == "2 open"
    assert bell(world.stranger) == "1 open"
    assert bell(world.admin) == "3 open"


def test_filters_of_the_inbox(world: World, signed_in: SignIn) -> None:
    make(world, 1)
    make(world, 2, ended_at=world.clock.at)
    make(world, 3, kind="idle_gpus", silenced_until=world.clock.at + timedelta(hours=1))
    make(world, 5, team=Team.objects.get(slug="nlp"))
    client = signed_in(world.viewer)

    def shown(query: str) -> list[str]:
        links = page(client.get(f"/alerts{query}")).links
        return sorted(text for text in links if text.startswith("Queue of"))

    assert shown("") == ["Queue of vision/detector1"]
    assert shown("?state=silenced") == ["Queue of vision/detector3"]
    assert shown("?state=ended") == ["Queue of vision/detector2"]
    assert len(shown("?state=all")) == 3
    assert shown("?state=all&kind=idle_gpus") == ["Queue of vision/detector3"]
    assert shown("?team=nlp") == []
    assert "No alert has this status" in page(client.get("/alerts?team=nlp")).text


def test_a_lead_silences_and_ends_the_silence(world: World, signed_in: SignIn) -> None:
    row = make(world)
    client = signed_in(world.lead)

    answer = client.post(f"/alerts/{row.pk}/silence", {"hours": "8", "reason": "known"})

    assert answer.status_code == 302
    row.refresh_from_db()
    assert row.silenced_until == world.clock.at + timedelta(hours=8)
    assert "known" in page(client.get("/alerts?state=silenced")).text
    assert client.post(f"/alerts/{row.pk}/unsilence").status_code == 302
    row.refresh_from_db()
    assert (row.silenced_until, row.silence_reason) == (None, "")
    client.post(f"/alerts/{row.pk}/silence", {"hours": "x", "reason": "known"})
    row.refresh_from_db()
    assert row.silenced_until is None


def test_a_member_sees_no_button(world: World, signed_in: SignIn) -> None:
    make(world)

    assert "Silence" not in page(signed_in(world.member).get("/alerts")).text.replace(
        "Silenced", ""
    )


def test_the_inbox_needs_as_many_queries_for_many_alerts(
    world: World, signed_in: SignIn, django_assert_num_queries: Any
) -> None:
    make(world, 1)
    client = signed_in(world.lead)
    client.get("/alerts")
    with django_assert_num_queries(QUERIES):
        client.get("/alerts")
    for number in range(2, 40):
        make(world, number)

    with django_assert_num_queries(QUERIES):
        shown = page(client.get("/alerts"))

    assert "1\N{EN DASH}25 of 39" in shown.text


def test_rest_lists_by_cursor_and_silences(world: World) -> None:
    rows = [make(world, number) for number in range(3)]
    make(world, 9, team=make_team(slug="audio"))
    api = APIClient()
    api.force_authenticate(world.lead)

    first = api.get("/api/v1/alerts?limit=2").json()
    second = api.get(first["next"]).json()

    assert [row["id"] for row in first["results"]] == [rows[2].pk, rows[1].pk]
    assert [row["id"] for row in second["results"]] == [rows[0].pk]
    assert first["results"][0] == {
        "id": rows[2].pk,
        "team": "vision",
        "kind": "queue_depth",
        "state": "open",
        "subject": "Queue of vision/detector2",
        "message": "Requests wait.",
        "advice": queue_depth.KIND.advice,
        "path": "/vision/deployments/detector",
        "deployment_id": None,
        "opened_at": first["results"][0]["opened_at"],
        "ended_at": None,
        "silenced_until": None,
        "silence_reason": "",
    }
    assert api.get(f"/api/v1/alerts/{rows[2].pk}").json() == first["results"][0]
    made = api.post(
        f"/api/v1/alerts/{rows[0].pk}/silence", {"hours": 1, "reason": "known"}, format="json"
    )
    assert (made.status_code, made.json()["state"]) == (200, "silenced")
    assert [r["id"] for r in api.get("/api/v1/alerts?state=silenced").json()["results"]] == [
        rows[0].pk
    ]
    assert api.get("/api/v1/alerts?state=lost").status_code in (400, 422)


def test_an_ended_alert_is_read_by_its_number_and_one_of_another_team_is_not_there(
    world: World,
) -> None:
    mine = make(world, 1, ended_at=world.clock.at)
    other = make(world, 9, team=make_team(slug="audio"))
    api = APIClient()
    api.force_authenticate(world.viewer)

    assert api.get(f"/api/v1/alerts/{mine.pk}").json()["state"] == "ended"
    hidden, missing = (api.get(f"/api/v1/alerts/{pk}") for pk in (other.pk, other.pk + 1))
    assert (hidden.status_code, missing.status_code) == (404, 404)
    assert hidden.json()["title"] == missing.json()["title"]
