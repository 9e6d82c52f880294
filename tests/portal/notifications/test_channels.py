"""Who may keep channels, and which addresses the portal never sends to."""

from __future__ import annotations

from typing import Any

import pytest

from portal.accounts.models import Team, User
from portal.audit.models import AuditEvent
from portal.core.errors import Conflict, DomainError, Forbidden, Invalid, NotFound
from portal.notifications import addresses, channels, sending, vault
from portal.notifications.models import Channel, Delivery
from tests.accounts import make_user
from tests.portal.notifications.listeners import Hook

pytestmark = pytest.mark.django_db
SLACK = "https://hooks.slack.com/services/T0123ABCD/B0123ABCD/abcdefghijklmnopqrstuvwx"
TEAMS = (
    "https://prod-12.westeurope.logic.azure.com:443/workflows/0a1b2c/triggers/manual/paths/invoke"
    "?api-version=2016-06-01&sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0&sig=abc"
)


def _add(actor: User, team: Team | None, **options: Any) -> Channel:
    options = {"name": "room", "kind": "slack", "address": SLACK, **options}
    return channels.add(actor=actor, team=team, **options)


def test_a_lead_adds_changes_and_removes_a_channel_of_the_team(lead: User, team: Team) -> None:
    channel = _add(lead, team)
    channels.subscribe(
        actor=lead, channel_id=channel.pk, event_codes=["rollout.waits"], is_on=False
    )
    channels.remove(actor=lead, channel_id=channel.pk)

    assert Channel.objects.count() == 0
    actions = AuditEvent.objects.order_by("id").values_list("action", "team_slug")
    assert list(actions) == [
        ("channel.added", "vision"),
        ("channel.changed", "vision"),
        ("channel.removed", "vision"),
    ]
    assert all("hooks" not in str(event.after) for event in AuditEvent.objects.all())


def test_members_and_strangers_keep_their_hands_off_the_teams_channels(
    lead: User, member: User, team: Team
) -> None:
    channel = _add(lead, team)
    stranger = make_user()

    for actor, refusal in ((member, Forbidden), (stranger, NotFound)):
        with pytest.raises(refusal):
            _add(actor, team)
        with pytest.raises(refusal):
            channels.list_of_team(actor=actor, team=team)
        with pytest.raises(refusal):
            channels.remove(actor=actor, channel_id=channel.pk)
        with pytest.raises(refusal):
            channels.try_out(actor=actor, channel_id=channel.pk, path="/")

    assert Channel.objects.count() == 1
    assert Delivery.objects.count() == 0


def test_a_persons_channel_is_nobody_elses_not_even_a_leads(lead: User, member: User) -> None:
    channel = _add(member, None)

    with pytest.raises(NotFound):
        channels.remove(actor=lead, channel_id=channel.pk)

    assert channels.list_of_person(member) == [channel]
    assert channels.list_of_person(lead) == []


def test_a_tried_channel_gets_a_message_even_while_it_is_off(
    lead: User, team: Team, hook: Hook
) -> None:
    channel = _add(lead, team, kind="webhook", address=f"{hook.url}/x")
    channels.subscribe(actor=lead, channel_id=channel.pk, event_codes=[], is_on=False)

    channels.try_out(actor=lead, channel_id=channel.pk, path="/account/notifications")
    sending.sweep()

    assert hook.bodies[0]["title"] == "Slipway can reach “room”"
    channel.refresh_from_db()
    assert channel.is_last_sent is True


@pytest.mark.parametrize(
    ("kind", "address"),
    [
        ("webhook", "http://hooks.example.org/x"),
        ("webhook", "https://user:pass@hooks.example.org/x"),
        ("webhook", "https://127.0.0.1/x"),
        ("webhook", "https://[::1]/x"),
        ("webhook", "https://[::ffff:10.0.0.1]/x"),
        ("webhook", "https://[2002:a00:1::]/x"),
        ("webhook", "https://169.254.169.254/latest/meta-data"),
        ("webhook", "https://2130706433/"),
        ("webhook", "https://no-such-host.invalid/x"),
        ("webhook", "https://"),
        ("webhook", "file:///etc/passwd"),
        ("webhook", "https://a.example.org/x y"),
        ("slack", "https://hooks.slack.com.evil.org/services/A/B/C"),
        ("slack", "https://127.0.0.1/services/A/B/C"),
        ("slack", "slack://T/B/C"),
        ("teams", "https://evil.org/workflows/a/triggers/manual/paths/invoke?sig=1"),
        ("teams", "https://logic.azure.com.evil.org/workflows/a/triggers/manual/paths/invoke?x"),
        ("email", "not an address"),
        ("email", "a@example.org?smtp=127.0.0.1"),
        ("email", "a@example.org,b@example.org"),
        ("script", "script://anything"),
    ],
)
def test_an_address_that_could_lead_elsewhere_is_refused(
    lead: User, team: Team, settings: Any, kind: str, address: str
) -> None:
    settings.SLIPWAY_SMTP_URL = "smtp://mail.example.org"

    with pytest.raises(Invalid):
        _add(lead, team, kind=kind, address=address)

    assert Channel.objects.count() == 0


def test_a_name_that_means_an_inner_host_by_the_time_of_sending_is_refused(
    lead: User, team: Team, hook: Hook, settings: Any
) -> None:
    channel = _add(lead, team, kind="webhook", address=f"{hook.url}/x")
    settings.SLIPWAY_NOTIFY_PRIVATE_HOSTS = []

    channels.try_out(actor=lead, channel_id=channel.pk, path="/")
    sending.sweep()

    assert hook.bodies == []
    assert Delivery.objects.get().state == "failed"


def test_mail_waits_for_an_operator_to_name_a_server(lead: User, settings: Any) -> None:
    settings.SLIPWAY_SMTP_URL = ""

    with pytest.raises(Invalid, match="E-mail is not configured"):
        _add(lead, None, kind="email", address="lee@example.org")


def test_slack_and_teams_addresses_are_understood_by_apprise() -> None:
    import apprise

    for kind, address, plugin in (
        ("slack", SLACK, "NotifySlack"),
        ("teams", TEAMS, "NotifyWorkflows"),
    ):
        checked = addresses.check(kind, address)
        url = addresses.apprise_url(kind, checked.plain, extras={})
        assert type(apprise.Apprise.instantiate(url)).__name__ == plugin


def test_an_address_sealed_with_another_key_is_reported(
    lead: User, team: Team, hook: Hook, settings: Any
) -> None:
    channel = _add(lead, team)
    old = settings.SECRET_KEY
    settings.SECRET_KEY = "another-key-" * 4

    channels.try_out(actor=lead, channel_id=channel.pk, path="/")
    sending.sweep()

    assert "cannot be decrypted" in Delivery.objects.get().outcome
    settings.SECRET_KEY_FALLBACKS = [old]
    assert vault.unseal(channel.sealed_address) == SLACK


def test_unknown_events_empty_names_and_too_many_channels_are_refused(
    lead: User, team: Team
) -> None:
    refused: list[tuple[dict[str, Any], type[DomainError]]] = [
        ({"event_codes": ["rollout.sings"]}, Invalid),
        ({"name": " "}, Invalid),
    ]
    for options, refusal in refused:
        with pytest.raises(refusal):
            _add(lead, team, **options)
    for _ in range(20):
        _add(lead, team)

    with pytest.raises(Conflict, match="20 channels at most"):
        _add(lead, team)

    assert Channel.objects.count() == 20
