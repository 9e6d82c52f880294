"""Reading pipelines: their desired state, the deployments they call, and their manifests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from deployments.access.domain import catalogue
from deployments.access.domain.kind import AccessKind
from deployments.changes.selectors import changes
from deployments.manifests.domain.metadata import Manifest, to_yaml
from deployments.models import ChangeRequest, Deployment, Pipeline, Revision
from deployments.pipelines.domain import manifests
from deployments.pipelines.domain.manifests import GraphContext
from deployments.pipelines.domain.pipeline_spec import PipelineSpec
from deployments.pipelines.domain.rules import CallableDeployment
from deployments.registry.domain import signatures
from deployments.serving.domain import inference_call
from deployments.spec.domain import engines
from fleet.clusters.domain.capabilities import Capabilities, Offer
from portal.accounts import policy
from portal.accounts.models import Team
from portal.accounts.policy import Actor
from portal.core.errors import NotFound
from portal.core.single_row import find_one

_RELATED = ("team", "cluster", "created_by")
# What tells whether a pipeline can call a deployment.
_COLUMNS = (
    *("name", "cluster", "cluster__capabilities", "environment", "is_retiring", "is_stopped"),
    *("stable_revision__spec", "candidate_revision__spec"),
)


def list_visible_to(
    actor: Actor, *, team_slug: str | None = None, with_retired: bool = False
) -> QuerySet[Pipeline]:
    rows = Pipeline.objects.filter(team__in=policy.visible_teams(actor)).select_related(*_RELATED)
    if team_slug:
        rows = rows.filter(team__slug=team_slug)
    return rows if with_retired else rows.filter(is_retired=False)


def get_visible(*, actor: Actor, team_slug: str, name: str) -> Pipeline:
    """Return the live pipeline of that name, else the one retired last. Raises NotFound for strangers."""
    rows = list_visible_to(actor, team_slug=team_slug, with_retired=True).filter(name=name)
    pipeline = rows.order_by("is_retired", "-id").first()
    if pipeline is None:
        raise NotFound(f"There is no pipeline {team_slug}/{name}, or you are not in its team.")
    return pipeline


def get_visible_by_id(*, actor: Actor, pipeline_id: int) -> Pipeline:
    pipeline = find_one(list_visible_to(actor, with_retired=True).filter(pk=pipeline_id))
    if pipeline is None:
        raise NotFound(f"There is no pipeline {pipeline_id}, or you are not in its team.")
    return pipeline


def url_of(pipeline: Pipeline) -> str:
    """Return the address to which clients send requests. It is the whole address, whichever deployments the
    steps call.
    """
    return f"{pipeline.cluster.gateway_url}/{pipeline.namespace}/{pipeline.name}"


def spec_of(pipeline: Pipeline) -> PipelineSpec | None:
    return PipelineSpec.from_json(pipeline.spec) if pipeline.spec else None


def requested_spec(change: ChangeRequest) -> PipelineSpec | None:
    """Return the spec of a request. None for a request that removes the pipeline."""
    return PipelineSpec.from_json(change.pipeline_spec) if change.pipeline_spec else None


def offer_for(capabilities: Capabilities) -> Offer:
    """Whether a cluster of these capabilities can run pipelines, and why not."""
    return capabilities.offers("pipeline")


def members_of(
    *, team: Team, cluster_id: int, environment: str, names: Collection[str] | None = None
) -> dict[str, CallableDeployment]:
    """Return the live deployments of a cluster by name, all or those of `names`; `why_not` says why a pipeline
    cannot call one.
    """
    rows = _live(team).filter(cluster_id=cluster_id)
    if names is not None:
        rows = rows.filter(name__in=names)
    found = list(_with_models(rows))
    closing = _closing(found)
    return {row.name: _member(row, environment, closing) for row in found}


def preload_members(requested: Sequence[tuple[Pipeline, PipelineSpec]]) -> None:
    """Read the deployments that the pipelines of a list would call, in as many queries as those of one. `render`
    of the same objects then reads none.
    """
    rows = _with_models(
        Deployment.objects.filter(
            is_retired=False,
            team__in={pipeline.team_id for pipeline, _ in requested},
            cluster__in={pipeline.cluster_id for pipeline, _ in requested},
            name__in={name for _, spec in requested for name in spec.deployments},
        ).select_related("stable_revision", "candidate_revision", "cluster")
    )
    by_place: dict[tuple[int, int], dict[str, Deployment]] = defaultdict(dict)
    for row in rows:
        by_place[row.team_id, row.cluster_id][row.name] = row
    closing = _closing(list(rows))
    for pipeline, spec in requested:
        live = by_place[pipeline.team_id, pipeline.cluster_id]
        pipeline.preloaded_members = {
            name: _member(live[name], pipeline.environment, closing) if name in live else None
            for name in spec.deployments
        }


def reasons(*, team: Team) -> Mapping[tuple[int, str], Mapping[str, str]]:
    """Map cluster and environment to its live deployments, each with why a pipeline cannot call it. Empty if it can."""
    found: dict[tuple[int, str], dict[str, str]] = {}
    for row in _live(team).only(*_COLUMNS):
        place = found.setdefault((row.cluster_id, row.environment), {})
        place[row.name] = _why_not(row, row.environment)
    return found


def callable_names(*, team: Team) -> Mapping[tuple[int, str], tuple[str, ...]]:
    """Map cluster and environment to the names of the deployments that a pipeline can call there, in order.
    Places without any are left out.
    """
    names = {
        place: tuple(name for name, why_not in answers.items() if not why_not)
        for place, answers in reasons(team=team).items()
    }
    return {place: found for place, found in names.items() if found}


def _with_models(rows: QuerySet[Deployment]) -> QuerySet[Deployment]:
    return rows.select_related("stable_revision__version__model").only(
        *("team", *_COLUMNS),
        *("stable_revision__version__signature", "stable_revision__version__model__name"),
    )


def _live(team: Team) -> QuerySet[Deployment]:
    rows = Deployment.objects.filter(team=team, is_retired=False).order_by("name")
    return rows.select_related("stable_revision", "candidate_revision", "cluster")


def _why_not(row: Deployment, environment: str) -> str:
    if row.environment != environment:
        return f"{row.name} is a {row.environment} deployment; the pipeline is {environment}."
    if row.is_retiring:
        return f"{row.name} is being retired."
    if row.is_stopped:
        return f"{row.name} is stopped: start it first."
    if row.stable_revision is None:
        return f"{row.name} is not serving yet."
    accesses = {_access_of(row.stable_revision), _access_of(row.candidate_revision)}
    ordered = sorted(accesses, key=lambda access: access.name)
    return next(filter(None, (why_closed(row, access) for access in ordered)), "")


def why_closed(row: Deployment, access: AccessKind) -> str:
    """Say why a pipeline cannot call the deployment with this access. Empty where it can."""
    if access.opens_to_everyone:
        return ""
    offer = Capabilities.from_json(row.cluster.capabilities).offers("protected-pipeline")
    return access.why_not_callable_by_pipeline(row.name, row.cluster.name, offer)


def _closing(rows: Sequence[Deployment]) -> frozenset[int]:
    """Return the ids whose open request closes the address: the pipeline's key must be there before."""
    requested = ChangeRequest.objects.filter(
        deployment__in=rows, state__in=changes.OPEN_STATES, revision__isnull=False
    ).select_related("revision")
    return frozenset(
        change.deployment_id
        for change in requested
        if change.deployment_id is not None and _access_of(change.revision).takes_pipeline_key
    )


def _member(row: Deployment, environment: str, closing: Collection[int]) -> CallableDeployment:
    why_not, revision = _why_not(row, environment), row.stable_revision
    if revision is None:
        return CallableDeployment(name=row.name, path="", why_not=why_not)
    model, spec = revision.version.model.name, revision.spec
    signature = signatures.from_json(revision.version.signature)
    call = inference_call.call_of(engine=spec["engine"], model=model, signature=signature)
    is_known = spec["engine"] in engines.ONNX_ENGINES and signature.inputs
    inputs = (
        tuple(sorted((i.name, i.dtype, signature.wire_dims(i)) for i in signature.inputs))
        if is_known
        else None
    )
    return CallableDeployment(
        name=row.name,
        path=call.path,
        model=model,
        is_chat=call.is_chat,
        inputs=inputs,
        why_not=why_not,
        needs_key=row.pk in closing
        or _access_of(revision).takes_pipeline_key
        or _access_of(row.candidate_revision).takes_pipeline_key,
    )


def _access_of(revision: Revision | None) -> AccessKind:
    return catalogue.UNCHECKED if revision is None else catalogue.read_stored(revision.spec)


def using(deployment: Deployment) -> list[Pipeline]:
    """Return live pipelines that call the deployment, or would once their open request is approved."""
    rows = Pipeline.objects.filter(
        team=deployment.team_id, cluster=deployment.cluster_id, is_retired=False, is_retiring=False
    ).select_related("team")
    specs: dict[int, list[Any]] = {row.pk: [row.spec] for row in rows}
    requested = ChangeRequest.objects.filter(pipeline__in=rows, state__in=changes.OPEN_STATES)
    for change in requested:
        specs[change.pipeline_id or 0].append(change.pipeline_spec)
    return [
        row
        for row in rows
        if any(
            deployment.name in PipelineSpec.from_json(spec).deployments
            for spec in specs[row.pk]
            if spec
        )
    ]


def context_of(pipeline: Pipeline) -> GraphContext:
    return GraphContext(
        team=pipeline.team.slug,
        namespace=pipeline.namespace,
        name=pipeline.name,
        pipeline_id=pipeline.pk or 0,
        gateway_url=pipeline.cluster.gateway_url,
        gateway_namespace=pipeline.cluster.gateway_namespace,
        gateway_name=pipeline.cluster.gateway_name,
    )


@dataclass(frozen=True, slots=True)
class RenderedPipeline:
    """A pipeline with its manifests. `manifests` are the graph, the filter with its key if it needs one, and
    its route; empty while a deployment that it calls is missing.
    """

    spec: PipelineSpec
    members: Mapping[str, CallableDeployment]
    manifests: Sequence[Manifest]

    @property
    def protected(self) -> list[str]:
        """The deployments that it calls with its key, in the order of its steps."""
        return [name for name in self.spec.deployments if self._needs_key(name)]

    def _needs_key(self, name: str) -> bool:
        return name in self.members and self.members[name].needs_key

    def to_yaml(self) -> str:
        return to_yaml(list(self.manifests))


def _members(pipeline: Pipeline, spec: PipelineSpec) -> Mapping[str, CallableDeployment]:
    known = pipeline.preloaded_members
    if known is not None and all(name in known for name in spec.deployments):
        return {name: row for name in spec.deployments if (row := known[name]) is not None}
    return members_of(
        team=pipeline.team,
        cluster_id=pipeline.cluster_id,
        environment=pipeline.environment,
        names=spec.deployments,
    )


def render(pipeline: Pipeline, spec: PipelineSpec) -> RenderedPipeline:
    members = _members(pipeline, spec)
    if not all(name in members for name in spec.deployments):
        return RenderedPipeline(spec, members, ())
    paths = {name: members[name].path for name in spec.deployments}
    context, has_key = context_of(pipeline), any(row.needs_key for row in members.values())
    made: list[Manifest] = [manifests.inference_graph(context, spec, paths)]
    made += [manifests.key_filter(context)] if has_key else []
    made.append(manifests.http_route(context, has_key=has_key))
    return RenderedPipeline(spec, members, made)
