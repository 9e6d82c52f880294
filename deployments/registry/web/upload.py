"""The upload page, and the ends of uploads that became no version.

The browser sends the bytes straight to the object store (static/js/upload.js).
"""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from deployments.registry.domain.artifacts import files as artifact_files
from deployments.registry.domain.formats import catalogue
from deployments.registry.selectors import versions
from deployments.registry.services import upload_endings
from deployments.registry.web.forms import UploadForm
from deployments.states import VersionState
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.ui import teams
from portal.ui.access import people_only
from portal.ui.htmx import respond

_MOST_UNFINISHED = 10


@require_GET
@people_only
def upload(request: HttpRequest, user: User, team: str) -> HttpResponse:
    owner = teams.get_visible(request, team)
    initial = {"team": team, "model": request.GET.get("model", "")}
    mine = versions.list_versions(actor=user).filter(created_by=user)
    context = {
        "team": owner,
        "form": UploadForm(initial=initial),
        "is_allowed": policy.is_allowed(user, Action.UPLOAD, owner),
        "formats": catalogue.servable_names(),
        "most_bytes": settings.SLIPWAY_MAX_UPLOAD_BYTES,
        "most_version_bytes": settings.SLIPWAY_MAX_VERSION_BYTES,
        "most_files": artifact_files.MAX_FILES,
        "unfinished": mine.filter(state=VersionState.UPLOADING, source_import=None)[
            :_MOST_UNFINISHED
        ],
        "failed": mine.filter(state=VersionState.FAILED)[:_MOST_UNFINISHED],
    }
    return respond(request, "registry/upload.html", context)


@require_POST
@people_only
def stop_verification(
    request: HttpRequest, user: User, team: str, name: str, number: int
) -> HttpResponse:
    version = versions.get_version_by_number(actor=user, team_slug=team, name=name, number=number)
    upload_endings.stop_verification(actor=user, version_id=version.pk)
    return HttpResponseRedirect(reverse("version", args=[team, name, number]))


@require_POST
@people_only
def discard(request: HttpRequest, user: User, team: str, name: str, number: int) -> HttpResponse:
    version = versions.get_version_by_number(actor=user, team_slug=team, name=name, number=number)
    upload_endings.discard(actor=user, version_id=version.pk)
    messages.success(request, f"{version.label}: upload of {version.filename} discarded.")
    return HttpResponseRedirect(reverse("upload", args=[team]))
