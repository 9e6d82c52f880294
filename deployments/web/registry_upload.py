"""The upload page. The browser sends the bytes straight to the object store (static/js/upload.js)."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from deployments.domain.states import VersionState
from deployments.selectors import registry
from deployments.web.fragments import respond
from deployments.web.registry_forms import UploadForm
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.ui import teams
from portal.ui.access import people_only

_MOST_UNFINISHED = 10


@require_GET
@people_only
def upload(request: HttpRequest, user: User) -> HttpResponse:
    team = teams.current(request)
    allowed = [t.slug for t in teams.visible(request) if policy.is_allowed(user, Action.UPLOAD, t)]
    initial = {"team": team.slug if team else "", "model": request.GET.get("model", "")}
    unfinished = registry.list_versions(actor=user, state=VersionState.UPLOADING)
    context = {
        "form": UploadForm(initial=initial, teams=allowed),
        "allowed": allowed,
        "most_bytes": settings.SLIPWAY_MAX_UPLOAD_BYTES,
        "unfinished": unfinished.filter(created_by=user)[:_MOST_UNFINISHED],
    }
    return respond(request, "registry/upload.html", context)
