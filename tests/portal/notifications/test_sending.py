"""From a notification to a message that a real server received."""

from __future__ import annotations

import io
import logging
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.db import transaction

from portal.accounts.models import Membership, Team, User
from portal.core import leases
from portal.notifications import channels, gateway, links, sending, services
from portal.notifications.links import DecisionRequest
from portal.notifications.models import Channel, DecisionLink, Delivery, Notice
from tests.portal.notifications.listeners import Hook, Mailbox

AT = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
pytestmark = pytest.mark.django_db


def _tell(team: Team, event: str = "rollout.waits", **data: Any) -> None:
    with transaction.atomic():
        services.notify(
            team=team,
            event=event,
            subject="detector may go to 25 %",
            message="All guards pass after 512 requests.",
            path="/vision/deployments/detector/rollout",
            data=data,
        )


def _hook_of(lead: User, team: Team | None, hook: Hook, **options: Any) -> Channel:
    return channels.add(
        actor=lead,
        team=team,
        name="room",
        kind="webhook",
        address=f"{hook.url}/in/s3cret-path?room=7",
        **options,
    )


def _only() -> Delivery:
    return Delivery.objects.get()


def test_a_webhook_gets_title_message_and_the_link_to_the_page(
    lead: User, team: Team, hook: Hook
) -> None:
    channel = _hook_of(lead, team, hook)

    _tell(team)
    sending.sweep()

    assert hook.paths == ["/in/s3cret-path?room=7"]
    body = hook.bodies[0]
    assert body["title"] == "detector may go to 25 %"
    assert body["message"] == (
        "All guards pass after 512 requests.\n\n"
        "vision: https://slipway.example.org/vision/deployments/detector/rollout"
    )
    assert (body["event"], body["team"]) == ("rollout.waits", "vision")
    assert body["url"] == "https://slipway.example.org/vision/deployments/detector/rollout"
    channel.refresh_from_db()
    assert (channel.is_last_sent, channel.last_outcome) == (True, "sent")


def test_a_mail_reaches_the_address(lead: User, team: Team, hook: Hook, mailbox: Mailbox) -> None:
    channels.add(actor=lead, team=None, name="me", kind="email", address="lee@example.org")

    _tell(team)
    sending.sweep()

    assert mailbox.recipients == ["rcpt TO:<lee@example.org>"]
    assert "Subject: detector may go to 25 %" in mailbox.mails[0]
    assert "From: slipway@example.org" in mailbox.mails[0]


def test_a_transient_response_is_retried_later_and_only_once_more(
    lead: User, team: Team, hook: Hook
) -> None:
    _hook_of(lead, team, hook)
    hook.statuses = [503]

    with time_machine.travel(AT, tick=False):
        _tell(team)
        sending.sweep()
        assert (_only().state, _only().outcome) == ("waiting", "failed with status 503")
        assert sending.sweep() == 0
    with time_machine.travel(AT + timedelta(seconds=5), tick=False):
        sending.sweep()
    with time_machine.travel(AT + timedelta(hours=1), tick=False):
        assert sending.sweep() == 0

    assert (_only().state, _only().attempts, len(hook.bodies)) == ("sent", 2, 2)


def test_an_address_that_is_gone_is_not_tried_again(lead: User, team: Team, hook: Hook) -> None:
    channel = _hook_of(lead, team, hook)
    hook.statuses = [410]

    _tell(team)
    sending.sweep()

    assert (_only().state, _only().next_check_at) == ("failed", None)
    channel.refresh_from_db()
    assert (channel.is_last_sent, channel.last_outcome) == (False, "rejected with status 410")


def test_a_delivery_that_keeps_failing_ends_at_its_deadline(
    lead: User, team: Team, hook: Hook
) -> None:
    _hook_of(lead, team, hook)
    hook.statuses = [500, 500]

    with time_machine.travel(AT, tick=False):
        _tell(team)
        sending.sweep()
    with time_machine.travel(AT + timedelta(hours=6), tick=False):
        sending.sweep()

    assert (_only().state, _only().outcome) == ("failed", "gave up: failed with status 500")


def test_a_redirect_is_not_followed(lead: User, team: Team, hook: Hook) -> None:
    _hook_of(lead, team, hook)
    hook.statuses, hook.redirect_to = [307], f"{hook.url}/elsewhere"

    _tell(team)
    sending.sweep()

    assert hook.paths == ["/in/s3cret-path?room=7"]
    assert _only().state == "waiting"


def test_a_delivery_that_another_worker_holds_is_left_to_it(
    lead: User, team: Team, hook: Hook
) -> None:
    _hook_of(lead, team, hook)
    _tell(team)
    assert leases.claim(Delivery, _only().pk) is not None

    sending.send(delivery_id=_only().pk)

    assert (hook.bodies, _only().attempts) == ([], 0)


def test_the_same_message_within_ten_minutes_is_sent_once(
    lead: User, team: Team, hook: Hook
) -> None:
    _hook_of(lead, team, hook)

    with time_machine.travel(AT, tick=False):
        _tell(team)
        _tell(team)
        _tell(team, step=2)
    with time_machine.travel(AT + timedelta(minutes=10), tick=False):
        _tell(team)

    assert Notice.objects.count() == 3


def test_channels_get_only_what_they_want_and_only_while_they_are_on(
    lead: User, team: Team, hook: Hook
) -> None:
    event_codes = _hook_of(lead, team, hook, event_codes=["rollout.waits"])
    off = _hook_of(lead, team, hook)
    channels.subscribe(actor=lead, channel_id=off.pk, event_codes=[], is_on=False)

    _tell(team)
    _tell(team, event="rollout.aborted")

    assert [delivery.channel_id for delivery in Delivery.objects.all()] == [event_codes.pk]


def test_a_person_who_has_left_the_team_gets_no_notification(
    member: User, lead: User, team: Team, hook: Hook
) -> None:
    _hook_of(member, None, hook)
    _tell(team)
    Membership.objects.filter(user=member).delete()

    sending.sweep()

    assert (hook.bodies, _only().state) == ([], "dropped")
    assert _only().outcome == "ana is no longer in vision"


def test_only_who_may_decide_gets_a_link_and_a_second_try_carries_the_same(
    member: User, lead: User, team: Team, hook: Hook
) -> None:
    """A room of the team gets none either: everyone in it could click."""
    _hook_of(lead, team, hook)
    _hook_of(member, None, hook)
    mine = _hook_of(lead, None, hook)
    question = DecisionRequest(
        kind="rollout", object_id=9, requester_id=member.pk, evidence_hash="ab"
    )
    hook.statuses = [503, 503, 503]

    with time_machine.travel(AT, tick=False):
        _tell(team, decide=question.to_json())
        sending.sweep()
    with time_machine.travel(AT + timedelta(minutes=1), tick=False):
        sending.sweep()

    link = DecisionLink.objects.get()
    assert (link.user, link.delivery.channel, link.evidence_hash) == (lead, mine, "ab")
    said = [re.findall(r"/decide/(\S+)", body["message"]) for body in hook.bodies]
    tokens = [line[0] for line in said if line]
    assert (len(hook.bodies), len(tokens), len(set(tokens))) == (6, 2, 1)
    with time_machine.travel(AT + timedelta(minutes=2), tick=False):
        assert (
            links.find(actor=lead, link_id=link.pk, opened=[links.known_digest(tokens[0])]) == link
        )


def test_telling_outside_a_transaction_or_of_nothing_known_is_a_mistake(team: Team) -> None:
    with pytest.raises(ValueError, match=r"'rollout.sings' is not an event"):
        _tell(team, event="rollout.sings")

    assert Notice.objects.count() == 0


@pytest.mark.django_db(transaction=True)
def test_no_address_is_contacted_while_a_transaction_is_open(
    lead: User, team: Team, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.network_guard import guarded

    _hook_of(lead, team, hook)
    calls: list[str] = []
    monkeypatch.setattr(gateway, "send", guarded(gateway.send, calls, "gateway.send"))
    with pytest.raises(RuntimeError):
        services.notify(
            team=team, event="rollout.waits", subject="s", message="", path="/", data={}
        )
    _tell(team)

    sending.sweep()

    assert calls == ["gateway.send"]


def test_an_address_is_in_no_row_and_in_no_log(lead: User, team: Team, hook: Hook) -> None:
    said = io.StringIO()
    everything, level = logging.StreamHandler(said), logging.getLogger().level
    logging.getLogger().addHandler(everything)
    logging.getLogger().setLevel(logging.DEBUG)
    channel = _hook_of(lead, team, hook)
    hook.statuses = [404]

    _tell(team)
    sending.sweep()

    logging.getLogger().setLevel(level)
    logging.getLogger().removeHandler(everything)
    assert "delivery=" in said.getvalue()
    assert "s3cret" not in said.getvalue()
    channel.refresh_from_db()
    assert "s3cret" not in f"{channel.sealed_address} {channel.hint} {channel.last_outcome}"
    assert channel.hint == "127.0.0.1"
