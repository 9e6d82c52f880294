"""What the audit page says of the last verification."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client

from portal.accounts.models import Role
from portal.audit.models import ChainCheck, StreamPosition
from tests.accounts import make_membership, make_user
from tests.page import page

AT = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
PROBLEM = "missing: event 7 at position 5 was deleted"

pytestmark = pytest.mark.django_db


def _banner(*, is_admin: bool) -> str:
    user = make_user(is_platform_admin=is_admin)
    if not is_admin:
        make_membership(user=user, role=Role.LEAD)
    client = Client()
    client.force_login(user)
    answer = client.get("/audit")
    assert answer.status_code == 200
    return page(answer).text


def test_the_audit_page_says_up_to_where_and_when_it_was_verified() -> None:
    ChainCheck.objects.create(at=AT, position=4, anchors=1, problem=PROBLEM)
    ChainCheck.objects.create(at=AT, position=1520, anchors=3)

    text = _banner(is_admin=False)

    assert "Verified up to event 1520, " in text
    assert "none was changed or deleted." in text


def test_a_failed_verification_names_the_row_to_admins_only() -> None:
    ChainCheck.objects.create(at=AT, position=4, anchors=1, problem=PROBLEM)

    admins, leads = _banner(is_admin=True), _banner(is_admin=False)

    assert f"events may have been changed or deleted in the database. {PROBLEM}. Run" in admins
    assert "Ask a platform admin." in leads
    assert "event 7" not in leads


def test_a_trail_that_was_never_verified_says_so() -> None:
    assert "Not verified yet." in _banner(is_admin=True)


def test_admins_see_that_the_siem_lacks_events(settings: Any) -> None:
    settings.SLIPWAY_AUDIT_SYSLOG = "tls://siem:6514"
    StreamPosition.objects.create(target="tls://siem:6514", position=8, error="siem:6514: refused")

    expected = "The SIEM has events up to position 8 only: siem:6514: refused."
    assert expected in _banner(is_admin=True)
    assert expected not in _banner(is_admin=False)
