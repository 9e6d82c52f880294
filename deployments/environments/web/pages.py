"""Environments with their rules, and the form that changes the rules of the platform or of a team."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from deployments.environments.domain.environment_rules import EnvironmentRules
from deployments.environments.selectors import environment_rules as selectors
from deployments.environments.selectors.environment_rules import OwnerRules
from deployments.environments.services import environment_rules
from deployments.environments.web.forms import EnvironmentForm
from deployments.states import Environment
from fleet.clusters.selectors import clusters
from portal.accounts import policy, roles, teams
from portal.accounts.models import Team, User
from portal.accounts.policy import Action
from portal.ui.access import people_only


@dataclass(frozen=True, slots=True)
class LayerRow:
    layer: OwnerRules
    clusters: tuple[str, ...]
    can_change: bool


@dataclass(frozen=True, slots=True)
class EnvironmentRow:
    environment: Environment
    rows: tuple[LayerRow, ...]
    # Teams without rules of their own here whose rules the reader may set.
    addable: tuple[Team, ...]


@require_safe
@people_only
def environment_list(request: HttpRequest, user: User) -> HttpResponse:
    visible = list(policy.visible_teams(user).order_by("slug"))
    led = [team for team in visible if policy.is_allowed(user, Action.MANAGE_ENVIRONMENTS, team)]
    names = {cluster.id: cluster.name for cluster in clusters.list_clusters()}
    rows = [
        _row(environment, layers, names, user, led)
        for environment, layers in selectors.list_layers([team.pk for team in visible]).items()
    ]
    context = {"environments": rows, "administers": roles.is_lead(user)}
    return render(request, "environments/environments.html", context)


@require_http_methods(["GET", "POST"])
@people_only
def platform_rules(request: HttpRequest, user: User, environment: str) -> HttpResponse:
    policy.require_platform_admin(user)
    return _edit(request, user, environment, None)


@require_http_methods(["GET", "POST"])
@people_only
def team_rules(request: HttpRequest, user: User, slug: str, environment: str) -> HttpResponse:
    team = teams.get_visible(actor=user, slug=slug)
    policy.require(user, Action.MANAGE_ENVIRONMENTS, team)
    return _edit(request, user, environment, team)


def _edit(request: HttpRequest, user: User, environment: str, team: Team | None) -> HttpResponse:
    known = environment_rules.require_known(environment)
    layers = selectors.layers_of(known, team.pk if team else None)
    own = next(
        (layer for layer in layers if layer.team == team), OwnerRules(team, EnvironmentRules())
    )
    form = EnvironmentForm(
        request.POST or None,
        environment=known,
        is_platform=team is None,
        initial={**own.rules.to_json(), "clusters": [str(pk) for pk in own.cluster_ids]},
    )
    if request.method == "POST":
        saved = form.run(
            lambda: environment_rules.change(
                actor=user,
                environment=known,
                team=team,
                rules=form.rules,
                cluster_ids=form.cluster_ids,
            )
        )
        if saved is not None:
            messages.success(request, f"Rules of {known} saved.")
            return redirect("environments")
    context = {"form": form, "environment": known, "team": team, "platform": layers[0].rules}
    return render(request, "environments/edit.html", context, status=form.status)


def _row(
    environment: Environment,
    layers: tuple[OwnerRules, ...],
    names: dict[int, str],
    user: User,
    led: list[Team],
) -> EnvironmentRow:
    rows = tuple(
        LayerRow(
            layer,
            tuple(sorted(names.get(pk, f"cluster {pk}") for pk in layer.cluster_ids)),
            user.is_platform_admin if layer.team is None else layer.team in led,
        )
        for layer in layers
    )
    set_by = {layer.team for layer in layers}
    return EnvironmentRow(environment, rows, tuple(team for team in led if team not in set_by))
