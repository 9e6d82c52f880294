"""Read the first values of the form of a new deployment from its address: a version, a promotion, a clone, a
request that is edited and resubmitted, or a draft.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.http import HttpRequest

from deployments.changes.selectors import form_drafts
from deployments.changes.selectors.form_drafts import OfferedDraft
from deployments.changes.services import clones, promotions, resubmissions
from deployments.changes.web import form_drafts as draft_fields
from deployments.changes.web import request_body, start_from
from deployments.models import ChangeRequest
from portal.accounts.models import Team, User
from portal.core.errors import DomainError


@dataclass(frozen=True, slots=True)
class Prefill:
    """The fields that the form begins with. `source` names the deployment that they come from; `problem` says
    which of its settings are missing.
    """

    fields: Mapping[str, str] = field(default_factory=dict)
    source: str = ""
    problem: str = ""
    # The request in whose place the form sends one, and the draft that is continued.
    replaced: ChangeRequest | None = None
    draft: OfferedDraft | None = None
    # What the control "Start from" has chosen.
    start: str = ""


def read(request: HttpRequest, user: User, team: Team) -> Prefill:
    """Read the first values from the query. Raises NotFound for a deployment that the user cannot see."""
    name, promoted = request.GET.get("from", ""), request.GET.get("promoted_from", "")
    replaced, key = request.GET.get("replaces", ""), request.GET.get(draft_fields.KEY, "")
    if key:
        return _read_draft(form_drafts.get_draft(user=user, team=team, key=key), user)
    if replaced.isdecimal():
        change = resubmissions.get_replaceable(actor=user, change_id=int(replaced))
        first = _read_body(resubmissions.request_body(change), f"request {change.pk}")
        return replace(first, replaced=change if change.team_id == team.pk else None)
    if promoted.isdecimal():
        body = promotions.request_body(actor=user, deployment_id=int(promoted))
        return _read_body(body, "the deployment that is promoted")
    if name:
        first = _read_body(clones.request_body(actor=user, team=team, name=name), name)
        return replace(first, start=start_from.value_of_deployment(name))
    version, start = {"version": request.GET.get("version", "")}, request.GET.get("preset", "")
    if start:
        value = f"preset-{start}"
        return Prefill({**version, **start_from.read_fields(value, user, team)}, start=value)
    return Prefill(version)


def _read_draft(draft: OfferedDraft, user: User) -> Prefill:
    fields = dict(draft.fields)
    replaces, start = fields.pop(draft_fields.REPLACES, ""), fields.pop(start_from.FILLED, "")
    problems = [draft.problem, draft_fields.describe_left_out(draft.left_out)]
    change = None
    if replaces.isdecimal():
        try:
            change = resubmissions.get_replaceable(actor=user, change_id=int(replaces))
        except DomainError:
            problems.append(f"Request {replaces} can no longer be replaced. This is a new request.")
    problem = " ".join(text for text in problems if text)
    return Prefill(fields, problem=problem, replaced=change, draft=draft, start=start)


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
