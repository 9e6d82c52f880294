"""A change of a deployment before it is requested: read, completed with defaults, and checked.

The same for a request and for its preflight, so that both refuse in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deployments import rejections
from deployments.access.domain.kind import AccessKind
from deployments.changes.selectors import available_rollouts
from deployments.changes.services import approvals, guard_checks, submit
from deployments.changes.services.submit import ChangeSpec
from deployments.guards.domain import limits
from deployments.manifests.selectors import rendering
from deployments.manifests.services import defaults
from deployments.models import Deployment, ModelVersion, Revision
from deployments.plans.domain import auto_promotion_limit, baseline, rollout_plan, warm_up
from deployments.plans.domain.rollout_plan import RolloutPlan
from deployments.plans.selectors import auto_promotion
from deployments.preflight.domain.checks import Check, Cost
from deployments.registry.selectors import starts, versions
from deployments.serving.selectors import revision_roles
from deployments.spec.domain import access as spec_access
from deployments.spec.domain import default_scaling, replicas
from deployments.spec.domain.engines import LLM_ENGINES
from deployments.spec.domain.serving_spec import ServingSpec
from deployments.states import ChangeKind
from fleet.clusters.domain.capabilities import Capabilities
from fleet.observation.domain.pod_start import LOAD
from portal.accounts.models import User
from portal.core.errors import Conflict, Invalid

_before_retire: list[Callable[[Deployment], None]] = []
_before_close: list[Callable[[Deployment, AccessKind], None]] = []


@dataclass(frozen=True, slots=True)
class ChangeDraft:
    """A change that may be requested now, by the checks that need no cluster."""

    deployment: Deployment
    requested: ChangeSpec


@dataclass(frozen=True, slots=True)
class ChangePreflight:
    """The checks of a request before it is sent. A stop or a retirement has none: they only remove."""

    checks: tuple[Check, ...] = ()
    cost: Cost | None = None
    manifests: str = ""

    @property
    def can_submit(self) -> bool:
        return not any(check.is_refusal for check in self.checks)


def check(*, actor: User, draft: ChangeDraft) -> ChangePreflight:
    """Run the checks of a request. Nothing is written."""
    if draft.requested.version is None:
        return ChangePreflight()
    checked = submit.check(actor, draft.deployment, draft.requested)
    return ChangePreflight(checked.checks, checked.cost, checked.manifests)


def canary(
    *,
    actor: User,
    deployment_id: int,
    version_id: int,
    steps: Sequence[dict[str, Any]],
    comment: str = "",
    spec: ServingSpec | None = None,
    plan: Mapping[str, Any] | None = None,
    access: str = "",
) -> ChangeDraft:
    """Draft the move of traffic to another version in steps. `spec` None keeps the stable revision's.

    A spec that does not state network.access keeps it; `access` states it besides. `plan` and `steps` are as in
    deployments/plans/domain/rollout_plan.py; None means the defaults.
    """
    deployment = submit.changeable(actor, deployment_id, ChangeKind.CANARY)
    version = versions.get_version(actor=actor, version_id=version_id)
    with rejections.as_invalid():
        checked = rollout_plan.check(_with_default_guards(deployment, plan or {}), list(steps))
        percent = auto_promotion.percent_of(deployment.team_id)
        auto_promotion_limit.require_within(checked.steps, percent, team=deployment.team.slug)
    stable = submit.stable_of(deployment)
    _require_same_model(stable, version)
    no_kind = available_rollouts.why_not(deployment, checked.kind, spec=spec)
    if no_kind:
        raise Invalid(no_kind, fields={"kind": no_kind})
    guard_checks.require_usable(deployment, version, checked)
    desired = _desired(spec, stable, version, access)
    guard_checks.require_measurable(desired, checked)
    _require_callable(deployment, stable, desired)
    complete = defaults.complete_spec(
        desired,
        version,
        rendering.policy_of(deployment),
        Capabilities.from_json(deployment.cluster.capabilities),
    )
    _require_baseline_possible(checked, rendering.spec_of(stable), complete)
    requested = ChangeSpec(
        ChangeKind.CANARY,
        approvals.clean(comment),
        version=version,
        spec=complete,
        stated_spec=desired,
        plan=_with_warm_up(checked, stable),
    )
    return ChangeDraft(deployment, requested)


def _desired(
    spec: ServingSpec | None, stable: Revision, version: ModelVersion, access: str
) -> ServingSpec:
    current = rendering.spec_of(stable)
    with rejections.as_invalid("" if spec is None else "spec."):
        if spec is None:
            desired = defaults.for_another(current, then=version, now=stable.version)
        else:
            desired = spec_access.keep_access(spec, current)
        if not access:
            return desired
        return spec_access.with_access(desired, access, current)


def _with_default_guards(deployment: Deployment, plan: Mapping[str, Any]) -> Mapping[str, Any]:
    """Fill in the default guards of a language model, which is judged by its own figures, unless the plan states
    guards.
    """
    if "guards" in plan or submit.stable_of(deployment).spec.get("engine") not in LLM_ENGINES:
        return plan
    return {**plan, "guards": [limit.to_json() for limit in limits.DEFAULTS_OF_TOKENS]}


def _require_baseline_possible(
    plan: RolloutPlan, stable: ServingSpec, candidate: ServingSpec
) -> None:
    problem = baseline.problem_with_scaling(stable, candidate) if plan.has_baseline else ""
    if problem:
        raise Invalid(problem, fields={"has_baseline": problem})


def _with_warm_up(plan: RolloutPlan, stable: Revision) -> RolloutPlan:
    """Fill in the default warm-up, so that approvers see it and it stays."""
    if plan.warmup_seconds is not None:
        return plan
    typical = starts.typical_start_of(stable)
    seconds = warm_up.from_start(typical.steps[LOAD] if typical else None)
    return plan.model_copy(update={"warmup_seconds": seconds})


def roll_back(
    *, actor: User, deployment_id: int, revision_number: int, comment: str = ""
) -> ChangeDraft:
    """Draft the return to an earlier revision, which keeps its number and takes over when ready."""
    deployment = submit.changeable(actor, deployment_id, ChangeKind.ROLL_BACK)
    stable = submit.stable_of(deployment)
    earlier = _restorable(deployment, revision_number)
    restored = rendering.spec_of(earlier)
    _require_callable(deployment, stable, restored)
    requested = ChangeSpec(
        ChangeKind.ROLL_BACK,
        approvals.clean(comment),
        version=earlier.version,
        spec=restored,
        revision=earlier,
        restored_number=earlier.number,
    )
    return ChangeDraft(deployment, requested)


def _restorable(deployment: Deployment, number: int) -> Revision:
    restorable = revision_roles.list_restorable(deployment)
    earlier = next((row for row in restorable if row.number == number), None)
    if earlier is not None:
        return earlier
    others = ", ".join(f"r{row.number}" for row in restorable)
    raise Invalid(
        f"{deployment} cannot be rolled back to r{number}: only to revisions that ran before "
        f"({others or 'there are none'}).",
        fields={"revision_number": "choose a revision that ran before"},
    )


def scale(
    *,
    actor: User,
    deployment_id: int,
    min_replicas: int,
    max_replicas: int,
    comment: str = "",
) -> ChangeDraft:
    """Draft other replicas of the stable revision: no other revision starts, no traffic moves."""
    deployment = submit.changeable(actor, deployment_id, ChangeKind.SCALE)
    stable = submit.stable_of(deployment)
    now = rendering.spec_of(stable)
    with rejections.as_invalid():
        desired = replicas.with_replicas(now, min_replicas=min_replicas, max_replicas=max_replicas)
    capabilities = Capabilities.from_json(deployment.cluster.capabilities)
    spec = defaults.autoscaled_in_place(desired, rendering.policy_of(deployment), capabilities)
    if spec == now:
        why = default_scaling.explain(desired, spec, capabilities, is_in_place=True)
        raise Invalid(
            f"{deployment} already runs {spec.min_replicas} to {spec.max_replicas} replicas. "
            f"{why}".strip(),
            fields={"min_replicas": "same as now", "max_replicas": why or "same as now"},
        )
    requested = ChangeSpec(
        ChangeKind.SCALE,
        approvals.clean(comment),
        version=stable.version,
        spec=spec,
        stated_spec=desired,
        revision=stable,
        scale=replicas.scale_of(spec, number=stable.number),
    )
    return ChangeDraft(deployment, requested)


def stop(*, actor: User, deployment_id: int, comment: str = "") -> ChangeDraft:
    """Draft a stop, which removes route and workloads once approved, as lifecycle/services/stop.py does at once."""
    deployment = submit.changeable(actor, deployment_id, ChangeKind.STOP)
    submit.stable_of(deployment)
    return ChangeDraft(deployment, ChangeSpec(ChangeKind.STOP, approvals.clean(comment)))


def start(*, actor: User, deployment_id: int, comment: str = "") -> ChangeDraft:
    """Draft a start of the stable revision of a stopped deployment."""
    deployment = submit.changeable(actor, deployment_id, ChangeKind.START)
    stable = submit.stable_of(deployment)
    if not deployment.is_stopped:
        raise Conflict(f"{deployment} is not stopped.", code="not_stopped")
    requested = ChangeSpec(
        ChangeKind.START,
        approvals.clean(comment),
        version=stable.version,
        spec=rendering.spec_of(stable),
        revision=stable,
    )
    return ChangeDraft(deployment, requested)


def before_retire(require_unused: Callable[[Deployment], None]) -> None:
    """Register a check that raises Conflict while something still needs the deployment.

    Features above this one call it in `apps.ready()`; registering twice is harmless.
    """
    if require_unused not in _before_retire:
        _before_retire.append(require_unused)


def retire(*, actor: User, deployment_id: int, comment: str = "") -> ChangeDraft:
    deployment = submit.changeable(actor, deployment_id, ChangeKind.RETIRE)
    for require_unused in _before_retire:
        require_unused(deployment)
    return ChangeDraft(deployment, ChangeSpec(ChangeKind.RETIRE, approvals.clean(comment)))


def before_close(require_callable: Callable[[Deployment, AccessKind], None]) -> None:
    """Register a check that raises Conflict if what calls the deployment could not with that access."""
    if require_callable not in _before_close:
        _before_close.append(require_callable)


def _require_callable(deployment: Deployment, stable: Revision, desired: ServingSpec) -> None:
    """Refuse to close an address that a part of the platform calls and could not call afterwards."""
    access = desired.network.access_kind
    if not access.opens_to_everyone and access != rendering.spec_of(stable).network.access_kind:
        for require_callable in _before_close:
            require_callable(deployment, access)


def _require_same_model(stable: Revision, version: ModelVersion) -> None:
    """Refuse another model: it has another path, so the stable URL would break for its clients."""
    if stable.version.model_id != version.model_id:
        name = stable.version.model.name
        raise Invalid(
            f"This deployment serves {name}; {version.label} is a version of another model. "
            "Create a new deployment for it.",
            fields={"version_id": f"choose a version of {name}"},
        )
