"""Promotion of what serves in one environment to the next: its evidence, and where it can go.

A promotion is an ordinary request, a deployment or a canary; the request finds the evidence by itself, so
nobody chooses which evidence an approver sees.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from deployments.environments.domain import environment_rules
from deployments.environments.domain.environment_rules import EnvironmentRules
from deployments.environments.domain.promotion import PromotionEvidence
from deployments.environments.selectors import environment_rules as rule_selectors
from deployments.environments.selectors import promotion
from deployments.manifests.selectors import rendering
from deployments.models import Deployment, Revision
from deployments.preflight.domain.checks import Check
from deployments.preflight.services import environment_checks
from deployments.serving.selectors import deployments
from deployments.states import ChangeKind, Environment
from portal.accounts.models import User
from portal.core.errors import Conflict


@dataclass(frozen=True, slots=True)
class Promotion:
    """A promotion to `environment`. `targets` serve the same model there.

    `evidence` is what an approver will see; None means that the rules there take another environment's, in which
    the version never was.
    """

    deployment: Deployment
    revision: Revision
    environment: Environment
    rules: EnvironmentRules
    evidence: PromotionEvidence | None
    checks: tuple[Check, ...]
    targets: tuple[Deployment, ...]

    @property
    def is_possible(self) -> bool:
        return not any(check.is_refusal for check in self.checks)


def preview(*, actor: User, deployment_id: int) -> Promotion:
    """Return the promotion of a deployment. Nothing is written. Raises Conflict if it cannot be promoted."""
    deployment = deployments.get_visible_by_id(actor=actor, deployment_id=deployment_id)
    environment = environment_rules.next_of(deployment.environment)
    if environment is None:
        raise Conflict(
            f"{deployment} is in {deployment.environment}, the last environment.",
            code="last_environment",
        )
    stable = deployment.stable_revision
    if stable is None or deployment.is_retired or deployment.is_retiring:
        raise Conflict(f"{deployment} serves nothing that could be promoted.", code="not_serving")
    rules = rule_selectors.in_force(environment, deployment.team_id)
    targets = _targets(deployment, stable, environment)
    source = environment_rules.source_of(environment, rules)
    spec = rendering.spec_of(stable)
    return Promotion(
        deployment=deployment,
        revision=stable,
        environment=environment,
        rules=rules,
        evidence=promotion.evidence_of(stable.version, team_id=deployment.team_id, source=source),
        checks=tuple(
            environment_checks.check_change(
                environment=environment,
                team_id=deployment.team_id,
                kind=ChangeKind.CANARY if targets else ChangeKind.DEPLOY,
                version=stable.version,
                spec=spec,
                additional=rendering.additional_versions(stable.version, spec),
            )
        ),
        targets=targets,
    )


def request_body(*, actor: User, deployment_id: int) -> dict[str, Any]:
    """Build the request of a new deployment in the next environment with the settings of this one."""
    return body_of(preview(actor=actor, deployment_id=deployment_id))


def body_of(found: Promotion) -> dict[str, Any]:
    """Build the request body of a promotion that was read already, as `request_body` does."""
    spec = rendering.spec_of(found.revision).to_json()
    return {
        "version_id": found.revision.version_id,
        "cluster_id": found.deployment.cluster_id,
        "environment": found.environment.value,
        "spec": {name: value for name, value in spec.items() if name not in ("image", "schema")},
    }


def _targets(
    deployment: Deployment, stable: Revision, environment: Environment
) -> tuple[Deployment, ...]:
    rows = Deployment.objects.filter(
        team=deployment.team_id,
        environment=environment,
        is_retired=False,
        is_retiring=False,
        is_stopped=False,
        stable_revision__version__model=stable.version.model_id,
    ).exclude(stable_revision__version=stable.version_id)
    related = rows.select_related("team", "cluster", "stable_revision__version__model__team")
    return tuple(related.order_by("name"))
