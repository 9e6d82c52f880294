from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
import time_machine

from portal.accounts import tokens
from portal.accounts.models import ApiToken
from portal.accounts.scopes import Scope
from portal.audit.models import AuditEvent
from portal.core import clock
from portal.core.errors import Forbidden, Invalid, NotFound
from tests.accounts import make_membership, make_team, make_user

pytestmark = pytest.mark.django_db


def test_a_token_finds_its_owner_and_is_stored_as_a_digest_only() -> None:
    user = make_user()

    made = tokens.create(actor=user, name="notebook")

    assert tokens.user_of(made.plain) == user
    stored = json.dumps(list(ApiToken.objects.values()), default=str)
    audited = json.dumps(list(AuditEvent.objects.values()), default=str)
    assert made.plain not in stored + audited
    assert AuditEvent.objects.get().action == "token.made"


def test_a_token_ends_with_its_lifetime() -> None:
    made = tokens.create(actor=make_user(), name="notebook", days=1)

    with time_machine.travel(clock.now() + timedelta(days=1, seconds=1), tick=False):
        assert tokens.user_of(made.plain) is None


def test_a_revoked_token_is_dead_at_once() -> None:
    user = make_user()
    made = tokens.create(actor=user, name="notebook")

    tokens.revoke(actor=user, token_id=made.row.pk)

    assert tokens.user_of(made.plain) is None
    with pytest.raises(NotFound, match="already revoked"):
        tokens.revoke(actor=user, token_id=made.row.pk)


def test_nobody_revokes_anothers_token() -> None:
    made = tokens.create(actor=make_user(), name="notebook")

    with pytest.raises(NotFound):
        tokens.revoke(actor=make_user(), token_id=made.row.pk)

    assert tokens.user_of(made.plain) is not None
    assert AuditEvent.objects.count() == 1


def test_an_inactive_owner_has_no_token() -> None:
    made = tokens.create(actor=make_user(is_active=False), name="notebook")

    assert tokens.user_of(made.plain) is None


@pytest.mark.parametrize(("name", "days"), [("", 1), ("  ", 1), ("n", 0), ("n", 366)])
def test_a_token_without_name_or_with_an_odd_life_is_refused(name: str, days: int) -> None:
    with pytest.raises(Invalid):
        tokens.create(actor=make_user(), name=name, days=days)

    assert ApiToken.objects.count() == 0
    assert AuditEvent.objects.count() == 0


def test_use_is_noted_at_most_once_a_minute(django_assert_num_queries: object) -> None:
    made = tokens.create(actor=make_user(), name="notebook")
    tokens.user_of(made.plain)

    with django_assert_num_queries(1):  # type: ignore[operator]  # pytest-django's fixture is untyped
        tokens.user_of(made.plain)


def test_a_token_has_the_scopes_and_the_team_that_were_chosen_and_every_one_reads() -> None:
    member = make_membership().user
    team = member.memberships.get().team

    made = tokens.create(actor=member, name="ci", scopes=["request"], team_slug=team.slug)
    user = tokens.user_of(made.plain)

    assert user is not None
    assert user.grant is not None
    assert user.grant.scopes == {Scope.READ, Scope.REQUEST}
    assert user.grant.team_id == team.pk
    assert made.row.expires_at - made.row.created_at == timedelta(days=90)
    assert AuditEvent.objects.get().after == {
        "scopes": "read request",
        "team": team.slug,
        "expires_at": made.row.expires_at.isoformat(),
        "requests_per_minute": None,
    }


def test_a_token_that_decides_lives_one_day() -> None:
    lead = make_user()

    made = tokens.create(actor=lead, name="terminal", scopes=["decide"])
    with pytest.raises(Invalid, match="expires after 1 day") as refused:
        tokens.create(actor=lead, name="ci", scopes=["decide"], days=2)

    assert made.row.expires_at - made.row.created_at == timedelta(days=1)
    assert refused.value.fields == {"days": "1 day with the scope decide"}
    assert ApiToken.objects.count() == 1


@pytest.mark.parametrize(("most", "offered"), [(365, 90), (30, 30), (1000, 90), (0, 1)])
def test_the_platform_bounds_lifetimes_and_a_year_is_the_longest(
    most: int, offered: int, settings: Any
) -> None:
    settings.SLIPWAY_TOKEN_MAX_DAYS = most
    longest = {365: 365, 30: 30, 1000: 365, 0: 1}[most]

    made = tokens.create(actor=make_user(), name="notebook")

    assert made.row.expires_at - made.row.created_at == timedelta(days=offered)
    assert tokens.lifetimes()[-1] == longest
    with pytest.raises(Invalid, match=f"1 to {longest} days"):
        tokens.create(actor=make_user(), name="notebook", days=longest + 1)


def test_scopes_and_teams_that_are_not_there_are_refused() -> None:
    user = make_user()

    with pytest.raises(Invalid, match="read, upload, request, decide"):
        tokens.create(actor=user, name="ci", scopes=["admin"])
    with pytest.raises(NotFound):
        tokens.create(actor=user, name="ci", team_slug=make_team().slug)

    assert not ApiToken.objects.exists()


def test_a_token_makes_no_token() -> None:
    user = tokens.user_of(tokens.create(actor=make_user(), name="one", scopes=list(Scope)).plain)

    assert user is not None
    with pytest.raises(Forbidden, match="Sign in with a browser"):
        tokens.create(actor=user, name="two")

    assert ApiToken.objects.count() == 1


def test_a_refused_token_gets_the_reason() -> None:
    user = make_user()
    short = tokens.create(actor=user, name="short", days=1)
    gone = tokens.create(actor=user, name="gone", days=30)
    tokens.revoke(actor=user, token_id=gone.row.pk)
    left = tokens.create(actor=make_user(is_active=False), name="left")

    with time_machine.travel(clock.now() + timedelta(days=2), tick=False):
        day = f"{short.row.expires_at:%Y-%m-%d %H:%M} UTC"
        code, message = tokens.explain_refusal(short.plain)

    assert code == "token_expired"
    assert message.startswith(f"The token “short” expired on {day}.")
    assert tokens.explain_refusal(gone.plain)[0] == "token_revoked"
    assert "was disabled with the account" in tokens.explain_refusal(left.plain)[1]
    assert tokens.explain_refusal("slp_made_up")[0] == "token_unknown"


@pytest.mark.parametrize("limit", [0, -1, 1_000_001, 2**40])
def test_a_limit_of_requests_that_the_platform_does_not_allow_is_refused(limit: int) -> None:
    with pytest.raises(Invalid, match="1 to 1000000 requests a minute") as refused:
        tokens.create(actor=make_user(), name="ci", requests_per_minute=limit)

    assert refused.value.fields == {"requests_per_minute": "1 to 1000000"}
    assert not ApiToken.objects.exists()
