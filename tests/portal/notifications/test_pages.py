from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from portal.accounts.models import Team, User
from portal.notifications import sending
from portal.notifications.models import Channel
from tests.accounts import make_user
from tests.page import page
from tests.portal.notifications.listeners import Hook, Mailbox

pytestmark = pytest.mark.django_db
TEAM_URL = "/admin/teams/vision/notifications"
MY_URL = "/account/notifications"


def _client(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def _add(client: Client, url: str, hook: Hook) -> Any:
    typed = {"name": "room", "kind": "webhook", "address": f"{hook.url}/s3cret"}
    return client.post(url, typed)


def test_a_lead_adds_tries_narrows_and_removes_a_channel(
    lead: User, team: Team, hook: Hook
) -> None:
    client = _client(lead)

    added = _add(client, TEAM_URL, hook)
    channel = Channel.objects.get()
    client.post(f"/channels/{channel.pk}/test")
    sending.sweep()
    shown = page(client.get(TEAM_URL)).text
    client.post(f"/channels/{channel.pk}", {"events": ["rollout.waits"], "is_on": "on"})

    assert added["Location"] == TEAM_URL
    assert len(hook.bodies) == 1
    assert "Works" in shown
    assert "s3cret" not in shown
    channel.refresh_from_db()
    assert (channel.events, channel.is_on) == (["rollout.waits"], True)
    client.post(f"/channels/{channel.pk}/remove")
    assert Channel.objects.count() == 0


def test_no_event_at_all_means_off_and_not_everything(lead: User, team: Team, hook: Hook) -> None:
    client = _client(lead)
    _add(client, MY_URL, hook)
    channel = Channel.objects.get()

    client.post(f"/channels/{channel.pk}", {"is_on": "on"})

    channel.refresh_from_db()
    assert channel.is_on is False


def test_a_refused_address_shows_at_the_form_and_keeps_what_was_typed(
    lead: User, team: Team
) -> None:
    typed = {"name": "metadata", "kind": "webhook", "address": "https://169.254.169.254/"}

    answer = _client(lead).post(TEAM_URL, typed)

    assert answer.status_code == 422
    assert "inside the portal's own network" in page(answer).text
    assert page(answer).field("name").value == "metadata"
    assert Channel.objects.count() == 0


def test_others_neither_see_nor_touch_channels(
    lead: User, member: User, team: Team, hook: Hook
) -> None:
    _add(_client(lead), TEAM_URL, hook)
    _add(_client(lead), MY_URL, hook)
    of_team = Channel.objects.get(user=None)
    own = Channel.objects.get(team=None)
    stranger = make_user()

    for user, status in ((member, 403), (stranger, 404)):
        client = _client(user)
        assert client.get(TEAM_URL).status_code == status
        for part in ("", "/test", "/remove"):
            assert client.post(f"/channels/{of_team.pk}{part}").status_code == status
            assert client.post(f"/channels/{own.pk}{part}").status_code == 404
    assert Client().get(TEAM_URL).status_code == 302

    assert Channel.objects.count() == 2
    assert hook.bodies == []


def test_without_a_mail_server_the_page_says_that_no_mail_is_sent(lead: User, team: Team) -> None:
    shown = page(_client(lead).get(MY_URL)).text

    assert "This portal sends no e-mail" in shown
    assert "or e-mail address" not in shown


def test_with_a_mail_server_the_page_takes_an_e_mail_address(
    lead: User, team: Team, mailbox: Mailbox
) -> None:
    shown = page(_client(lead).get(MY_URL)).text

    assert "or e-mail address" in shown
    assert "sends no e-mail" not in shown
