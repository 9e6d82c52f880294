"""A link that is shown once, on the page that answers its making."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.http import HttpRequest

from portal.accounts.local.models import AccountLink


@dataclass(frozen=True, slots=True)
class ShownLink:
    """A link that is shown once. `mailed_to` is empty where no e-mail is configured; where it is, an invitation has
    no `url`.
    """

    title: str
    url: str
    expires_at: datetime
    mailed_to: str


def build_shown_link(
    request: HttpRequest, row: AccountLink, *, path: str, title: str, email: str = ""
) -> ShownLink:
    base = settings.SLIPWAY_PUBLIC_URL
    url = f"{base}{path}" if base else request.build_absolute_uri(path)
    url = url if path else ""
    is_mailed = row.next_check_at is not None
    return ShownLink(title, url, row.expires_at, email if is_mailed else "")
