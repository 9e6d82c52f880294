"""Reading pipelines: what is wanted of them, whom their steps ask, and what an approval binds to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import QuerySet

from deployments.approvals.domain import rules as approval_rules
from deployments.approvals.domain.rules import Requirement
from deployments.approvals.selectors import approvals as approval_selectors
from deployments.manifests.domain.metadata import Manifest, digest_of, to_yaml
from deployments.models import Deployment, GitDelivery, Pipeline, PipelineChange
from deployments.pipelines.domain import manifests, pipeline_spec
from deployments.pipelines.domain.manifests import GraphPlace
from deployments.pipelines.domain.pipeline_spec import PipelineSpec
from deployments.pipelines.domain.rules import Member
from deployments.registry.domain import signatures
from deployments.serving.domain import inference_call
from deployments.spec.domain import engines
from deployments.states import ChangeKind, ChangeState, PipelineChangeKind
from fleet.clusters.domain.capabilities import Capabilities, Offer
from portal.accounts import policy
from portal.accounts.models import Team, User
from portal.accounts.policy import Actor
from portal.core.errors import NotFound

OPEN_STATES = (ChangeState.SUBMITTED, ChangeState.APPROVED, ChangeState.APPLYING)
# Rules of approval speak of changes of deployments; a pipeline's are looked at as these.
_RULED_AS = {
    PipelineChangeKind.CREATE: ChangeKind.DEPLOY,
    PipelineChangeKind.CHANGE: ChangeKind.DEPLOY,
    PipelineChangeKind.START: ChangeKind.START,
    PipelineChangeKind.RETIRE: ChangeKind.RETIRE,
}
_RELATED = ("team", "cluster", "created_by")


def list_visible_to(
    actor: Actor, *, team_slug: str | None = None, with_retired: bool = False
) -> QuerySet[Pipeline]:
    rows = Pipeline.objects.filter(team__in=policy.visible_teams(actor)).select_related(*_RELATED)
    if team_slug:
        rows = rows.filter(team__slug=team_slug)
    return rows if with_retired else rows.filter(is_retired=False)


def get_visible(*, actor: Actor, team_slug: str, name: str) -> Pipeline:
    """The live pipeline of that name, else the one retired last. Raises NotFound for strangers."""
    rows = list_visible_to(actor, team_slug=team_slug, with_retired=True).filter(name=name)
    found = rows.order_by("is_retired", "-id").first()
    if found is None:
        raise NotFound(f"There is no pipeline {team_slug}/{name}, or you are not in its team.")
    return found


def get_visible_by_id(*, actor: Actor, pipeline_id: int) -> Pipeline:
    found = list_visible_to(actor, with_retired=True).filter(pk=pipeline_id).first()
    if found is None:
        raise NotFound(f"There is no pipeline {pipeline_id}, or you are not in its team.")
    return found


def changes_of(pipeline: Pipeline) -> list[PipelineChange]:
    """Newest first."""
    return list(_with_related(PipelineChange.objects.filter(pipeline=pipeline)))


def list_changes(actor: Actor, *, state: str = "") -> QuerySet[PipelineChange]:
    rows = PipelineChange.objects.filter(pipeline__team__in=policy.visible_teams(actor))
    return _with_related(rows.filter(state=state) if state else rows)


def get_change(*, actor: Actor, change_id: int) -> PipelineChange:
    found = list_changes(actor).filter(pk=change_id).first()
    if found is None:
        raise NotFound(f"There is no pipeline change {change_id}, or you are not in its team.")
    return found


def open_change_of(pipeline: Pipeline) -> PipelineChange | None:
    rows = PipelineChange.objects.filter(pipeline=pipeline, state__in=OPEN_STATES)
    return _with_related(rows).first()


def waiting_for(actor: User) -> list[PipelineChange]:
    """Those that wait for a decision which this person may take, oldest first."""
    rows = list(list_changes(actor, state=ChangeState.SUBMITTED).order_by("id"))
    if not rows:
        return []
    desk = approval_selectors.Desk(actor)
    return [change for change in rows if desk.is_wanted(change)]


def url_of(pipeline: Pipeline) -> str:
    """Where clients send requests: the whole address, whatever its steps ask."""
    return f"{pipeline.cluster.gateway_url}/{pipeline.namespace}/{pipeline.name}"


def spec_of(pipeline: Pipeline) -> PipelineSpec | None:
    return pipeline_spec.stored(pipeline.spec) if pipeline.spec else None


def asked_of(change: PipelineChange) -> PipelineSpec | None:
    return pipeline_spec.stored(change.spec) if change.spec else None


def offer_for(team: Team, capabilities: Mapping[str, Any]) -> Offer:
    """Whether this team may have pipelines on a cluster of these capabilities, and why not."""
    if GitDelivery.objects.filter(team=team, is_enabled=True).exists():
        why = (
            f"{team.slug} delivers through Git, and pipelines are applied to the cluster directly."
        )
        return Offer(ok=False, why=why)
    return Capabilities.from_json(capabilities).offers("pipeline")


def members_of(*, team: Team, cluster_id: int, environment: str) -> dict[str, Member]:
    """The live deployments that a pipeline may ask, and those beside them that it may not, with why."""
    rows = Deployment.objects.filter(team=team, cluster_id=cluster_id, is_retired=False)
    rows = rows.select_related("stable_revision__version__model").order_by("name")
    return {row.name: _member(row, environment) for row in rows}


def _member(row: Deployment, environment: str) -> Member:
    why_not = ""
    if row.environment != environment:
        why_not = f"{row.name} is a {row.environment} deployment; the pipeline is {environment}."
    elif row.is_retiring:
        why_not = f"{row.name} is being retired."
    elif row.is_stopped:
        why_not = f"{row.name} is stopped: start it first."
    elif row.stable_revision is None:
        why_not = f"{row.name} is not serving yet."
    if row.stable_revision is None:
        return Member(name=row.name, path="", why_not=why_not)
    revision = row.stable_revision
    model, spec = revision.version.model.name, revision.spec
    signature = signatures.from_json(revision.version.signature)
    call = inference_call.call_of(engine=spec["engine"], model=model, signature=signature)
    # A transformer takes what it likes.
    is_plain = not (spec.get("components") or {}).get("transformer_image")
    is_told = spec["engine"] in engines.ONNX_ENGINES and is_plain and signature.inputs
    inputs = (
        tuple(sorted((one.name, one.dtype, signature.wire_dims(one)) for one in signature.inputs))
        if is_told
        else None
    )
    return Member(
        name=row.name,
        path=call.path,
        model=model,
        is_chat=call.is_chat,
        inputs=inputs,
        why_not=why_not,
    )


def members_asked(pipeline: Pipeline) -> dict[str, Member]:
    return members_of(
        team=pipeline.team, cluster_id=pipeline.cluster_id, environment=pipeline.environment
    )


def using(deployment: Deployment) -> list[Pipeline]:
    """Live pipelines whose steps ask the deployment, or would once what is asked for is approved."""
    rows = Pipeline.objects.filter(
        team=deployment.team_id, cluster=deployment.cluster_id, is_retired=False, is_retiring=False
    ).select_related("team")
    wanted = PipelineChange.objects.filter(pipeline__in=rows, state__in=OPEN_STATES)
    asked: dict[int, list[Any]] = {row.pk: [row.spec] for row in rows}
    for pipeline_id, spec in wanted.values_list("pipeline_id", "spec"):
        asked[pipeline_id].append(spec)
    return [
        row
        for row in rows
        if any(
            deployment.name in pipeline_spec.stored(spec).deployments
            for spec in asked[row.pk]
            if spec
        )
    ]


def place_of(pipeline: Pipeline) -> GraphPlace:
    return GraphPlace(
        team=pipeline.team.slug,
        namespace=pipeline.namespace,
        name=pipeline.name,
        pipeline_id=pipeline.pk or 0,
        gateway_url=pipeline.cluster.gateway_url,
        gateway_namespace=pipeline.cluster.gateway_namespace,
        gateway_name=pipeline.cluster.gateway_name,
    )


def manifests_of(
    pipeline: Pipeline, spec: PipelineSpec, members: Mapping[str, Member]
) -> tuple[Manifest, Manifest]:
    paths = {name: members[name].path for name in spec.deployments}
    return manifests.manifests(place_of(pipeline), spec, paths)


def yaml_of(pipeline: Pipeline, spec: PipelineSpec | None, members: Mapping[str, Member]) -> str:
    """Empty for a retirement, and where a deployment has gone meanwhile."""
    if spec is None or not all(name in members for name in spec.deployments):
        return ""
    return to_yaml(manifests_of(pipeline, spec, members))


def required_now(change: PipelineChange) -> tuple[Requirement, ...]:
    """What the rules ask for now. A pipeline takes no GPU, so rules about money and GPUs are out."""
    pipeline = change.pipeline
    subject = approval_rules.Subject(
        team_id=pipeline.team_id,
        environment=pipeline.environment,
        kind=_RULED_AS[PipelineChangeKind(change.kind)],
        instance_type="",
        gpu_name="",
        has_cost=False,
        month_amount=None,
    )
    return approval_rules.requirements(approval_selectors.enabled_rules(), subject)


def evidence_of(change: PipelineChange, rules: Sequence[Requirement]) -> str:
    """SHA-256 over all that an approval binds to, as it is now."""
    pipeline = change.pipeline
    return digest_of(
        {
            "kind": change.kind,
            "pipeline": [pipeline.cluster_id, pipeline.namespace, pipeline.name],
            "environment": pipeline.environment,
            "before": pipeline.spec,
            "is_stopped": pipeline.is_stopped,
            "wanted": change.spec,
            "manifests": yaml_of(pipeline, asked_of(change), members_asked(pipeline)),
            "rules": [{**one.to_json(), "why": ""} for one in rules],
        }
    )


def _with_related(rows: QuerySet[PipelineChange]) -> QuerySet[PipelineChange]:
    found = rows.select_related("pipeline__team", "pipeline__cluster", "requester")
    return found.prefetch_related("approvals__user")
