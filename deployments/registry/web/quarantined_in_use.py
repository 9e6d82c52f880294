"""The page of live deployments that serve a quarantined version."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from deployments.registry.selectors import quarantined_in_use
from portal.accounts.models import User
from portal.ui.access import people_only
from portal.ui.htmx import respond


@require_GET
@people_only
def uses(request: HttpRequest, user: User) -> HttpResponse:
    rows = quarantined_in_use.list_uses(actor=user)
    context = {"uses": rows, "deployment_count": len({use.deployment.pk for use in rows})}
    return respond(request, "registry/quarantined_in_use.html", context)
