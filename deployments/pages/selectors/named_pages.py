"""The names of the ledger that have a page: the demo's past is also of deployments and models that never were."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import Q

from deployments.models import Deployment, Model

Names = Collection[tuple[str, str]]


def existing_deployments(names: Names) -> set[tuple[str, str]]:
    """Return those of the deployments, given by team and name, that exist."""
    named = _any_of(names, "team__slug", "name")
    return set(Deployment.objects.filter(named).values_list("team__slug", "name").order_by())


def existing_models(names: Names) -> set[tuple[str, str]]:
    """Return those of the models, given by team and name, that exist."""
    named = _any_of(names, "team__slug", "name")
    return set(Model.objects.filter(named).values_list("team__slug", "name").order_by())


def _any_of(names: Names, team: str, name: str) -> Q:
    condition = Q(pk__in=[])
    for of_team, called in names:
        condition |= Q(**{team: of_team, name: called})
    return condition
