"""Read the first values of the form of a new deployment from its address: a version, a promotion, a clone, or a
request that is edited and resubmitted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.http import HttpRequest

from deployments.changes.services import clones, promotions, resubmissions
from deployments.changes.web import request_body
from portal.accounts.models import Team, User


@dataclass(frozen=True, slots=True)
class Prefill:
    """The fields that the form begins with. `source` names the deployment that they come from; `problem` says
    which of its settings are missing.
    """

    fields: Mapping[str, str] = field(default_factory=dict)
    source: str = ""
    problem: str = ""


def read(request: HttpRequest, user: User, team: Team) -> Prefill:
    """Read the first values from the query. Raises NotFound for a deployment that the user cannot see."""
    name, promoted = request.GET.get("from", ""), request.GET.get("promoted_from", "")
    replaced = request.GET.get("replaces", "")
    if replaced.isdecimal():
        change = resubmissions.get_replaceable(actor=user, change_id=int(replaced))
        return _read_body(resubmissions.request_body(change), f"request {change.pk}")
    if promoted.isdecimal():
        body = promotions.request_body(actor=user, deployment_id=int(promoted))
        return _read_body(body, "the deployment that is promoted")
    if name:
        return _read_body(clones.request_body(actor=user, team=team, name=name), name)
    return Prefill({"version": request.GET.get("version", "")})


def _read_body(body: Mapping[str, Any], source: str) -> Prefill:
    try:
        return Prefill(request_body.clear_defaults(request_body.fields_of(body)), source)
    except request_body.Unreadable:
        # Settings that only the API can state.
        kept = ("version", "cluster", "environment", "name")
        values = {name: str(body.get(f"{name}_id", body.get(name, ""))) for name in kept}
        problem = (
            f"Only the API can set all settings of {source}. The version, cluster and environment were "
            "copied; other settings have their defaults."
        )
        return Prefill(values, source, problem)
