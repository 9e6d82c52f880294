"""The code of a version, readable before its release."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from deployments.registry.selectors import versions
from deployments.registry.services import source_code
from portal.accounts.models import User
from portal.ui.access import people_only
from portal.ui.htmx import respond


@require_GET
@people_only
def code_page(request: HttpRequest, user: User, team: str, name: str, number: int) -> HttpResponse:
    """Show the file at `?path=`. Without it, the first one."""
    version = versions.get_version_by_number(actor=user, team_slug=team, name=name, number=number)
    paths = source_code.paths(version)
    path = request.GET.get("path", "") or next(iter(paths), "")
    source = source_code.read(actor=user, version_id=version.pk, path=path)
    context = {"version": version, "paths": paths, "source": source}
    return respond(request, "registry/source_code.html", context)
