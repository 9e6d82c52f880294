from __future__ import annotations

import json
from datetime import timedelta

import pytest
import time_machine

from portal.accounts import tokens
from portal.accounts.models import ApiToken
from portal.audit.models import AuditEvent
from portal.core import clock
from portal.core.errors import Invalid, NotFound
from tests.accounts import make_user

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
