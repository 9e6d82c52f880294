"""Choose what to import from an MLflow server: a registered model, then its version."""

from __future__ import annotations

import re
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from deployments.imports.selectors import mlflow_models
from portal.accounts.models import User
from portal.core.errors import DomainError, NotFound
from portal.ui import teams
from portal.ui.access import people_only
from portal.ui.htmx import respond

_LONGEST_NAME: Final = 63


@require_GET
@people_only
def choose(request: HttpRequest, user: User, team: str, server: str) -> HttpResponse:
    """Show the models of a server to choose from. While it does not answer, the page says why and keeps what
    was entered.
    """
    owner = teams.get_visible(request, team)
    servers = mlflow_models.list_servers(actor=user)
    if server not in servers:
        raise NotFound(f"There is no MLflow server {server[:40]} that you may import from.")
    model, page = request.GET.get("model", ""), request.GET.get("page", "")
    context: dict[str, Any] = {
        "team": owner,
        "server": server,
        "address": servers[server],
        "servers": servers,
        "search": request.GET.get("search", ""),
        "model": model,
        "target": suggest_name(model),
    }
    try:
        context["list"] = (
            mlflow_models.list_versions(actor=user, server=server, model=model, page=page)
            if model
            else mlflow_models.search_models(
                actor=user, server=server, text=context["search"], page=page
            )
        )
    except DomainError as error:
        context["problem"] = error.message
        return respond(request, "imports/mlflow.html", context, status=int(error.status))
    return respond(request, "imports/mlflow.html", context)


def suggest_name(model: str) -> str:
    """Return a name of a model here that resembles the registered one."""
    return re.sub(r"[^a-z0-9]+", "-", model.lower()).strip("-")[:_LONGEST_NAME].strip("-")
