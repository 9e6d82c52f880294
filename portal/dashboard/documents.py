"""The documents inside the portal, for everyone who is signed in."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from portal.accounts.models import User
from portal.core.errors import NotFound
from portal.ui.access import people_only
from portal.ui.docs import documents


@require_safe
@people_only
def document(request: HttpRequest, user: User, name: str = documents.INDEX) -> HttpResponse:
    return _show(request, name)


@require_safe
@people_only
def record(request: HttpRequest, user: User, record: str) -> HttpResponse:
    """A decision and its reasons."""
    return _show(request, f"adr/{record}")


def _show(request: HttpRequest, name: str) -> HttpResponse:
    found = documents.read(name)
    if found is None:
        raise NotFound("There is no such document.")
    context = {
        "document": found,
        "is_index": name == documents.INDEX,
        "sections": [heading for heading in found.headings if heading.level == 2],
    }
    return render(request, "dashboard/document.html", context)
