"""Change the rules of an environment: the platform's by its admins, a team's by its leads.

A lead adds to what the platform asks for. To take something away again needs a platform admin, so that
nobody loosens rules for their own request.
"""

from __future__ import annotations

from typing import Any

from django.db import IntegrityError, transaction

from deployments import audit_actions
from deployments.environments.domain import environment_rules
from deployments.environments.domain.environment_rules import EnvironmentRules
from deployments.environments.selectors import environment_rules as selectors
from deployments.models import ChangeRequest, EnvironmentRule
from deployments.states import ChangeState, Environment
from fleet.clusters.selectors import clusters
from portal.accounts import policy
from portal.accounts.local import step_up
from portal.accounts.models import Team, User
from portal.accounts.policy import Action
from portal.audit import trail
from portal.core import clock
from portal.core.errors import Conflict, Forbidden, Invalid, NotFound

_UNDECIDED = (ChangeState.SUBMITTED, ChangeState.APPROVED)


def change(
    *,
    actor: User,
    environment: str,
    team: Team | None,
    rules: EnvironmentRules,
    cluster_ids: tuple[int, ...] = (),
) -> EnvironmentRules:
    """Change the rules of an environment. Approvals that were given under the earlier rules become void.

    Raises Forbidden, also for a lead who requires less than before, Invalid with the fields, and Conflict for a
    concurrent change.
    """
    environment = require_known(environment)
    _require_allowed(actor, team)
    step_up.require(actor)
    _require_valid(environment, team, rules, cluster_ids)
    try:
        with transaction.atomic():
            _write(actor, environment, team, rules, cluster_ids)
    except IntegrityError as error:
        raise Conflict(
            "Someone else changed these rules at the same time. Reload the page.",
            code="rules_changed",
        ) from error
    return rules


def require_known(environment: str) -> Environment:
    if environment not in set(Environment):
        raise NotFound(f"There is no environment {environment}.")
    return Environment(environment)


def _write(
    actor: User,
    environment: Environment,
    team: Team | None,
    rules: EnvironmentRules,
    cluster_ids: tuple[int, ...],
) -> None:
    """Write the rules. Call inside a transaction: the row is locked before it is compared."""
    rows = EnvironmentRule.objects.select_for_update(no_key=True, of=("self",)).order_by()
    row = rows.filter(environment=environment, team=team).first()
    old_clusters: tuple[int, ...] = ()
    if row is None:
        row = EnvironmentRule(environment=environment, team=team)
        old = EnvironmentRules() if team else environment_rules.DEFAULTS[environment]
    else:
        old = selectors.rules_of(row)
        old_clusters = tuple(row.clusters.values_list("pk", flat=True))
    _require_not_weaker(actor, old, rules)
    for name, value in rules.to_json().items():
        setattr(row, name, value)
    row.changed_at = clock.now()
    row.save()
    row.clusters.set(cluster_ids)
    trail.record(
        actor=actor,
        action=audit_actions.ENVIRONMENT_CHANGED,
        obj=row,
        team_slug=team.slug if team else "",
        before=_audit_values(old, old_clusters),
        after=_audit_values(rules, cluster_ids),
    )
    _reevaluate_requests(team)


def _require_allowed(actor: User, team: Team | None) -> None:
    if team is None:
        policy.require_platform_admin(actor)
    else:
        policy.require(actor, Action.MANAGE_ENVIRONMENTS, team)


def _require_not_weaker(actor: User, old: EnvironmentRules, rules: EnvironmentRules) -> None:
    weaker = rules.weaker_fields(old)
    if weaker and not actor.is_platform_admin:
        names = ", ".join(name.replace("_", " ") for name in weaker)
        raise Forbidden(
            f"This asks for less than before ({names}). Only a platform admin can do that.",
            code="rules_weaker",
        )


def _require_valid(
    environment: Environment,
    team: Team | None,
    rules: EnvironmentRules,
    cluster_ids: tuple[int, ...],
) -> None:
    most = environment_rules.MOST_APPROVALS
    sources = {"", *environment_rules.sources_of(environment)}
    problems = {
        name: problem
        for name, is_valid, problem in (
            ("approvals", 1 <= rules.approvals <= most, f"1 to {most}"),
            ("role", rules.role in environment_rules.ROLES, "lead or admin"),
            ("promoted_from", rules.promoted_from in sources, f"none comes before {environment}"),
            ("clusters", not (team and cluster_ids), "only the platform reserves clusters"),
        )
        if not is_valid
    }
    known = {cluster.id for cluster in clusters.list_clusters()}
    if not set(cluster_ids) <= known:
        problems["clusters"] = "there is no such cluster"
    if problems:
        raise Invalid(f"Check {', '.join(sorted(problems))} of the rules.", fields=problems)


def _audit_values(rules: EnvironmentRules, cluster_ids: tuple[int, ...]) -> dict[str, Any]:
    return {**rules.to_json(), "clusters": sorted(cluster_ids)}


def _reevaluate_requests(team: Team | None) -> None:
    """Make undecided requests due now, so that their pages show the rules as they are."""
    rows = ChangeRequest.objects.filter(state__in=_UNDECIDED)
    if team is not None:
        rows = rows.filter(team=team)
    rows.update(next_check_at=clock.now())
