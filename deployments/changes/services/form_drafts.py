"""Keep the form of a new deployment until it is sent: for its author only, in each team, a few at a time."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from django.db import transaction
from django.db.models import Q

from deployments.changes.domain import unsent_forms
from deployments.models import FormDraft
from portal.accounts import policy
from portal.accounts.models import Team, User
from portal.accounts.policy import Action
from portal.core import clock

MOST: Final = 5
KEPT_DAYS: Final = 14
# As long a save may still be on its way when the request is sent.
_CLOSED_FOR: Final = timedelta(minutes=1)
_KEY: Final = re.compile(r"[A-Za-z0-9_-]{20,32}")


def make_key() -> str:
    """Return a key for a form that is opened, so that two tabs have two drafts."""
    return secrets.token_urlsafe(16)


def is_key(text: str) -> bool:
    return bool(_KEY.fullmatch(text))


def save(
    *, actor: User, team: Team, key: str, fields: Mapping[str, str], version_label: str = ""
) -> None:
    """Save the form as the actor's draft of that key. Beyond the most that a person may have, the oldest is deleted.

    Nothing is saved of a form that is empty or too long, or that was sent a moment ago.
    """
    policy.require(actor, Action.REQUEST_CHANGE, team)
    kept, left_out = unsent_forms.split_fields(fields)
    if not is_key(key) or unsent_forms.is_too_long(kept):
        return
    at = clock.now()
    row = FormDraft.objects.filter(user=actor, team=team, key=key).first()
    values = {
        "fields": kept,
        "left_out": left_out,
        "version_label": version_label.replace("\0", "")[:200],
    }
    if row is None:
        if kept:
            _create(actor, team, key, {**values, "changed_at": at})
        return
    if row.sent_at is not None and at - row.sent_at < _CLOSED_FOR:
        return
    is_same = all(getattr(row, name) == value for name, value in values.items())
    if not is_same or row.sent_at is not None:
        FormDraft.objects.filter(pk=row.pk, sent_at=row.sent_at).update(
            **values, changed_at=at, sent_at=None
        )


def mark_sent(*, actor: User, team: Team, key: str) -> None:
    """Delete the draft of a form that was sent. Its key stays for a while, for a save that comes late."""
    if not is_key(key):
        return
    at = clock.now()
    emptied = {"fields": {}, "left_out": [], "version_label": "", "changed_at": at, "sent_at": at}
    FormDraft.objects.update_or_create(user=actor, key=key, defaults={"team": team, **emptied})


def delete(*, actor: User, team: Team, key: str) -> None:
    """Delete the actor's own draft. One that is gone already is no error."""
    policy.require(actor, Action.REQUEST_CHANGE, team)
    FormDraft.objects.filter(user=actor, team=team, key=key[:32], sent_at=None).delete()


def sweep() -> int:
    """Delete drafts that nobody changed for two weeks, and the keys of sent ones. Returns how many."""
    at = clock.now()
    old = Q(changed_at__lt=at - timedelta(days=KEPT_DAYS))
    sent = Q(sent_at__lt=at - timedelta(hours=1))
    deleted, _ = FormDraft.objects.filter(old | sent).delete()
    return deleted


def _create(actor: User, team: Team, key: str, values: Mapping[str, object]) -> None:
    with transaction.atomic():
        # Two saves of one form may come at once, and only one makes the row.
        FormDraft.objects.get_or_create(user=actor, key=key, defaults={"team": team, **values})
        own = FormDraft.objects.filter(user=actor, team=team, sent_at=None)
        surplus = list(own.values_list("pk", flat=True)[MOST:])
        if surplus:
            FormDraft.objects.filter(pk__in=surplus).delete()
