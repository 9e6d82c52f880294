"""Rules of environments as rows, and which hold for a team."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Q, QuerySet

from deployments.environments.domain.environment_rules import DEFAULTS, ORDER, EnvironmentRules
from deployments.models import EnvironmentRule
from deployments.states import Environment
from portal.accounts.models import Team


@dataclass(frozen=True, slots=True)
class OwnerRules:
    """The rules of one owner. `team` None means the platform; `is_set` is False for defaults."""

    team: Team | None
    rules: EnvironmentRules
    cluster_ids: tuple[int, ...] = ()
    is_set: bool = True


def rules_of(row: EnvironmentRule) -> EnvironmentRules:
    return EnvironmentRules(
        approvals=row.approvals,
        role=row.role,
        stop_needs_approval=row.stop_needs_approval,
        callers_need_key=row.callers_need_key,
        golden_required=row.golden_required,
        promoted_from=row.promoted_from,
    )


def layers_of(environment: str, team_id: int | None) -> tuple[OwnerRules, ...]:
    """Return the platform's rules, then the team's if it has any."""
    of_team = Q(team=None) if team_id is None else Q(team=None) | Q(team=team_id)
    return _with_defaults(
        Environment(environment), _rows().filter(of_team, environment=environment)
    )


def in_force(environment: str, team_id: int) -> EnvironmentRules:
    first, *others = layers_of(environment, team_id)
    rules = first.rules
    for layer in others:
        rules = rules.merge(layer.rules)
    return rules


def list_layers(team_ids: Iterable[int]) -> dict[Environment, tuple[OwnerRules, ...]]:
    """Return the platform's rules and those of the given teams, by environment."""
    rows = list(_rows().filter(Q(team=None) | Q(team__in=list(team_ids))))
    return {
        environment: _with_defaults(environment, [r for r in rows if r.environment == environment])
        for environment in ORDER
    }


def list_admitted(cluster_id: int) -> tuple[str, ...]:
    """Return the environments that the cluster is reserved for. Empty if it admits all."""
    rows = EnvironmentRule.objects.filter(team=None, clusters=cluster_id).order_by()
    names = set(rows.values_list("environment", flat=True))
    return tuple(environment.value for environment in ORDER if environment.value in names)


def _rows() -> QuerySet[EnvironmentRule]:
    rows = EnvironmentRule.objects.order_by().select_related("team")
    return rows.prefetch_related("clusters")


def _with_defaults(
    environment: Environment, rows: Iterable[EnvironmentRule]
) -> tuple[OwnerRules, ...]:
    layers = [
        OwnerRules(row.team, rules_of(row), tuple(cluster.pk for cluster in row.clusters.all()))
        for row in rows
    ]
    layers.sort(key=lambda layer: layer.team.slug if layer.team else "")
    if not layers or layers[0].team is not None:
        layers.insert(0, OwnerRules(None, DEFAULTS[environment], is_set=False))
    return tuple(layers)
