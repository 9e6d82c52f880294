"""The page that starts an import, and the page that shows one."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from deployments.imports.selectors import imports as selector
from deployments.imports.selectors import mlflow_models
from deployments.imports.services import imports, sources
from deployments.imports.services.imports import ImportDraft
from deployments.imports.web.forms import ImportForm
from deployments.models import Import
from deployments.states import ImportState
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.core.errors import DomainError, NotFound
from portal.ui import teams
from portal.ui.access import keeps_input, people_only
from portal.ui.htmx import respond

_PARTS: Final = {"import": "imports/_import.html"}
_MOST_LISTED: Final = 10


@require_http_methods(["GET", "POST"])
@people_only
@keeps_input
def new_import(request: HttpRequest, user: User, team: str) -> HttpResponse:
    owner = teams.get_visible(request, team)
    initial = {
        "model": request.GET.get("model", ""),
        "address": request.GET.get("address", ""),
        "server": request.GET.get("server", ""),
    }
    servers = mlflow_models.list_servers(actor=user)
    form = ImportForm(request.POST or None, initial=initial, servers=servers)
    if request.method == "POST":
        job = form.run(lambda: _start(user, team, form))
        if job is not None:
            return redirect("import", team, job.pk)
    mine = selector.list_imports(actor=user).filter(created_by=user)
    context = {
        "form": form,
        "team": owner,
        "is_allowed": policy.is_allowed(user, Action.UPLOAD, owner),
        "recent": mine[:_MOST_LISTED],
        "servers": servers,
        "available": sources.describe_available(team),
    }
    return respond(request, "imports/new.html", context, status=form.status)


@require_GET
@people_only
def import_page(request: HttpRequest, user: User, team: str, import_id: int) -> HttpResponse:
    """Show an import. The page is polled for its progress until it has ended."""
    job = _get(user, team, import_id)
    is_final = job.state != ImportState.RUNNING
    return respond(
        request, "imports/import.html", _context(user, job), parts=_PARTS, is_final=is_final
    )


@require_POST
@people_only
def cancel(request: HttpRequest, user: User, team: str, import_id: int) -> HttpResponse:
    return _decide(request, user, _get(user, team, import_id), imports.cancel)


@require_POST
@people_only
def resume(request: HttpRequest, user: User, team: str, import_id: int) -> HttpResponse:
    return _decide(request, user, _get(user, team, import_id), imports.resume)


def _start(user: User, team: str, form: ImportForm) -> Import:
    return imports.start(
        actor=user,
        team_slug=team,
        model_name=form.cleaned_data["model"],
        draft=ImportDraft(**form.arguments()),
    )


def _get(user: User, team: str, import_id: int) -> Import:
    """Return an import of the team that the user may see, or raise NotFound."""
    job = selector.get_import(actor=user, import_id=import_id)
    if job.version.team.slug != team:
        raise NotFound(f"Team {team} has no import {import_id}.")
    return job


def _decide(request: HttpRequest, user: User, job: Import, run: Any) -> HttpResponse:
    policy.require(user, Action.UPLOAD, job.version)
    try:
        run(actor=user, import_id=job.pk)
    except DomainError as error:
        messages.error(request, error.message)
        return respond(
            request, "imports/import.html", _context(user, job), status=int(error.status)
        )
    return redirect("import", job.version.team.slug, job.pk)


def _context(user: User, job: Import) -> dict[str, Any]:
    total_bytes = job.version.declared_size_bytes
    percent = 100 * job.copied_bytes // total_bytes if total_bytes else 0
    return {
        "job": job,
        "percent": min(percent, 100),
        "is_running": job.state == ImportState.RUNNING,
        "can_change": policy.is_allowed(user, Action.UPLOAD, job.version)
        and job.state in (ImportState.RUNNING, ImportState.FAILED),
    }
