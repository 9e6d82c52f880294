"""The evidence that an approval of a deployment's change binds to, and its difference from what serves now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from deployments.approvals.domain.rules import ChangeFacts
from deployments.changes.selectors import address_access
from deployments.changes.selectors.subjects import ChangedField, deployment_of
from deployments.environments.domain import environment_rules as domain_rules
from deployments.environments.selectors import environment_rules, promotion
from deployments.manifests.selectors import rendered
from deployments.manifests.selectors.rendered import RenderedRevision, identity_of
from deployments.models import ChangeRequest, Deployment, ModelVersion, Revision
from deployments.preflight.domain.checks import Cost
from deployments.quality.selectors import quality
from deployments.registry.domain.metadata import version_metadata
from deployments.serving.selectors import alias_returns
from deployments.spec.domain import field_values, serving_spec
from deployments.spec.domain.placement import catalogue
from deployments.states import ChangeKind

_FIRST: Final = (
    "version",
    "accuracy",
    "dataset_version",
    "weights",
    "sha256",
    "engine",
    "instance_type",
    "gpus",
    "min_replicas",
    "max_replicas",
    "cpu",
    "memory",
)


def render(change: ChangeRequest) -> RenderedRevision | None:
    """Render the revision with the requested replicas. None for a stop or a retirement."""
    if change.revision is None:
        return None
    return rendered.render_revision(change.revision, scale=change.scale or None)


def reuse_preflight(change: ChangeRequest, checked: RenderedRevision) -> RenderedRevision | None:
    """Return what the checks rendered if `render` would return the same.

    None otherwise, as for a new deployment without a key before its row (SQLite).
    """
    if change.revision is None:
        return None
    scale = change.scale or None
    return checked if rendered.is_of(checked, change.revision, scale=scale) else None


def facts(change: ChangeRequest) -> ChangeFacts:
    """Return the facts for the rules. A change that only removes has no cost, and matches by the GPUs of the stable
    revision.
    """
    deployment = deployment_of(change)
    revision = change.revision or deployment.stable_revision
    return ChangeFacts(
        team_id=deployment.team_id,
        environment=deployment.environment,
        kind=change.kind,
        instance_types=(
            catalogue.names_for_approval(serving_spec.read_stored(revision.spec))
            if revision
            else ()
        ),
        gpu_names=tuple(filter(None, change.gpu_name.split(", "))),
        has_cost=change.revision is not None,
        month_amount=Cost.from_json(change.cost).month_max,
        opens_address=address_access.is_opening(change),
    )


def list_golden_ids(change: ChangeRequest) -> tuple[int, ...]:
    """Return the golden requests of a canary's model; other changes send none. A saved golden request never changes."""
    if change.kind != ChangeKind.CANARY or change.revision is None:
        return ()
    rows = quality.golden_requests_of(change.revision.version.model)
    return tuple(sorted(rows.order_by().values_list("pk", flat=True)))


def promotion_of(change: ChangeRequest) -> dict[str, Any]:
    """Return the evidence for a version that enters an environment.

    Other changes bring none, and an unfinished rollout there is none yet.
    """
    deployment = deployment_of(change)
    if change.kind not in (ChangeKind.DEPLOY, ChangeKind.CANARY) or change.revision is None:
        return {}
    environment = deployment.environment
    rules = environment_rules.in_force(environment, deployment.team_id)
    source = domain_rules.source_of(environment, rules)
    if not source:
        return {}
    shown = promotion.evidence_of(
        change.revision.version, team_id=deployment.team_id, source=source
    )
    return shown.to_json() if shown and shown.is_finished else {}


def evidence(change: ChangeRequest, revision: RenderedRevision | None) -> dict[str, Any]:
    deployment = deployment_of(change)
    stable = deployment.stable_revision
    returns = [item.description for item in alias_returns.list_for_change(change)]
    return {
        **({"aliases": returns} if returns else {}),
        "environment_rules": _environment_rules(deployment),
        "stable": deployment.stable_revision_id,
        "scale": [deployment.scale, change.scale],
        "versions": [] if revision is None else _versions_of(revision),
        "compared": {} if stable is None else _compared(stable.version),
        "steps": change.steps,
        "plan": change.plan,
    }


def _environment_rules(deployment: Deployment) -> dict[str, Any]:
    """Return what the environment requires of a version and its address; its approvers are among the rules."""
    rules = environment_rules.in_force(deployment.environment, deployment.team_id).to_json()
    return {name: rules[name] for name in ("callers_need_key", "golden_required", "promoted_from")}


def diff(change: ChangeRequest) -> list[ChangedField]:
    """Compare the requested revision with the stable one."""
    if change.revision is None:
        return []
    stable = deployment_of(change).stable_revision
    if stable is not None and stable.pk == change.revision_id and not change.scale:
        stable = None
    before, after = _fields_of(stable, {}), _fields_of(change.revision, change.scale)
    return [
        ChangedField(field=name, before=before.get(name, ""), after=after.get(name, ""))
        for name in sorted({*before, *after}, key=_position)
    ]


def _versions_of(revision: RenderedRevision) -> list[dict[str, Any]]:
    """Return identity, metadata and recorded files of every version that the revision loads."""
    return [
        {
            "identity": identity_of(version),
            "metadata": version.metadata,
            "laid_out": version.laid_out,
        }
        for version in (revision.version, *revision.additional)
    ]


def _position(name: str) -> tuple[int, str]:
    return (_FIRST.index(name) if name in _FIRST else len(_FIRST), name)


def _fields_of(revision: Revision | None, scale: Mapping[str, Any]) -> dict[str, str]:
    if revision is None:
        return {}
    version = revision.version
    fields: dict[str, Any] = {"version": version.label, "sha256": version.sha256[:12]}
    if version.source_uri:
        fields = {"version": version.label, "weights": version.source_uri}
    approved = scale or revision.deployment.scale
    is_scaled = approved.get("revision") == revision.number
    replicas = {k: v for k, v in approved.items() if k != "revision"} if is_scaled else {}
    spec = {k: v for k, v in {**revision.spec, **replicas}.items() if k != "schema"}
    return field_values.flatten({**_compared(version), **fields, **spec})


def _compared(version: ModelVersion) -> dict[str, Any]:
    """Return the metadata of the version that serves, which is shown next to the requested version's."""
    dataset = {k: v for k, v in version.metadata.items() if k == "dataset_version"}
    return {**version_metadata.metrics_of(version.metadata), **dataset}
