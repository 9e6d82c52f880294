"""Makes the cluster match pipelines' desired state: observe, decide, one effect, record, requeue.

Level-triggered, like deployments: every pass starts from the row and the live objects. Both objects
are the portal's own, as the route of a deployment is, so drift in them is reverted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from deployments.delivery.services import git_backend
from deployments.delivery.services.git_backend import CommitResult, GitBackend
from deployments.manifests.domain import http_route, metadata
from deployments.manifests.domain.metadata import Manifest
from deployments.models import Deployment, Pipeline
from deployments.pipelines.domain import manifests as graph_manifests
from deployments.pipelines.domain.pipeline_spec import PipelineSpec
from deployments.pipelines.domain.reconcile import Act, Live, Verdict, decide, edits, judge
from deployments.pipelines.selectors import pipelines
from deployments.pipelines.services import record
from deployments.pipelines.services.record import Observation
from deployments.states import DeploymentState
from fleet.kube.domain import resource_types
from fleet.kube.domain.errors import ClusterError, Throttled, Unreachable
from fleet.kube.services import objects
from portal.core import clock, leases
from portal.core.leases import Lease

_LEASE_SECONDS: Final = 60
_SOON_SECONDS: Final = 1.0
_CALM_SECONDS: Final = 15.0
_UNREACHABLE_SECONDS: Final = 5.0
_CAP_SECONDS: Final = 60.0
_CALM: Final = (DeploymentState.READY, DeploymentState.STOPPED)
_DEPLOYMENT: Final = (resource_types.DEPLOYMENT.api_version, resource_types.DEPLOYMENT.kind)
_KINDS: Final = (
    (graph_manifests.API_VERSION, graph_manifests.KIND),
    (http_route.API_VERSION, http_route.KIND),
    _DEPLOYMENT,
)


@dataclass(frozen=True, slots=True)
class _Desired:
    """`graph` None: remove the pipeline, or `gone` says which deployments no longer exist."""

    graph: Manifest | None
    route: Manifest
    failing: Sequence[str] = ()
    gone: str = ""


def sweep(*, limit: int = 200) -> int:
    """One pass of what is due. A cluster that does not answer is called once per sweep."""
    due = leases.due(Pipeline, limit=limit)
    unreachable: set[int] = set()
    places = dict(Pipeline.objects.filter(pk__in=due).values_list("pk", "cluster_id"))
    for pipeline_id in due:
        if places[pipeline_id] in unreachable:
            continue
        if isinstance(reconcile(pipeline_id=pipeline_id), Unreachable):
            unreachable.add(places[pipeline_id])
    return len(due)


def reconcile(*, pipeline_id: int) -> ClusterError | None:
    """Reconcile one pipeline; does nothing when another worker holds its lease."""
    lease = leases.claim(Pipeline, pipeline_id, seconds=_LEASE_SECONDS)
    if lease is None:
        return None
    pipeline = Pipeline.objects.select_related("team", "cluster").get(pk=pipeline_id)
    if pipeline.is_retired or not pipeline.desired_generation:
        leases.release(Pipeline, lease, next_check_at=None)
        return None
    try:
        seconds = _pass(pipeline, lease)
    except ClusterError as error:
        record.note_refusal(pipeline, lease, error)
        retry_after = error.retry_after_seconds if isinstance(error, Throttled) else 0
        # Soon after a cluster answers again everything arrives, however long it was away.
        cap = _UNREACHABLE_SECONDS if isinstance(error, Unreachable) else _CAP_SECONDS
        leases.back_off(Pipeline, lease, cap_seconds=cap, least_seconds=retry_after)
        return error
    later = None if seconds is None else clock.now() + timedelta(seconds=seconds)
    leases.release(Pipeline, lease, next_check_at=later)
    return None


def _pass(pipeline: Pipeline, lease: Lease) -> float | None:
    """Returns the seconds until the next pass; None for never."""
    live, desired = _observe(pipeline), _desired_of(pipeline)
    act = Act.NONE if desired.gone else decide(desired.graph, desired.route, live)
    if act == Act.FINISH_RETIRING and not pipeline.is_retiring:
        # It is stopped, and nothing of it is left on the cluster.
        act = Act.NONE
    if act != Act.NONE and not leases.is_held(Pipeline, lease):
        return _SOON_SECONDS
    committed = _carry_out(act, pipeline, desired)
    observation = Observation(
        live=live,
        act=act,
        verdict=_verdict(pipeline, desired, live, act, committed),
        reverted="" if committed else _reverted(pipeline, act, desired, live),
    )
    record.record(pipeline, lease, observation)
    if act == Act.FINISH_RETIRING:
        return None
    is_calm = act == Act.NONE and observation.verdict.state in _CALM
    return _CALM_SECONDS if is_calm else _SOON_SECONDS


def _observe(pipeline: Pipeline) -> Live:
    labels = {metadata.PIPELINE_ID_LABEL: str(pipeline.pk)}
    listed = objects.list_several(
        cluster_id=pipeline.cluster_id,
        kinds=_KINDS,
        namespaces=[pipeline.namespace],
        labels=labels,
    )
    graph, route, router = (_named(rows, pipeline.name) for rows in listed)
    return Live(graph=graph, route=route, router=router)


def _named(rows: Sequence[dict[str, Any]], name: str) -> dict[str, Any] | None:
    return next((row for row in rows if row["metadata"]["name"] == name), None)


def _desired_of(pipeline: Pipeline) -> _Desired:
    context, spec = pipelines.context_of(pipeline), pipelines.spec_of(pipeline)
    route = graph_manifests.http_route(context)
    if pipeline.is_retiring or pipeline.is_stopped or spec is None:
        return _Desired(None, route)
    rendered = pipelines.render(pipeline, spec)
    members = rendered.members
    gone = [name for name in spec.deployments if name not in members or not members[name].path]
    if gone:
        reason = f"{', '.join(gone)} no longer exists. Change or retire the pipeline."
        return _Desired(None, route, gone=reason)
    graph, route = rendered.manifests
    return _Desired(graph, route, failing=_failing(pipeline, spec))


def _failing(pipeline: Pipeline, spec: PipelineSpec) -> list[str]:
    rows = Deployment.objects.filter(
        team=pipeline.team_id,
        cluster=pipeline.cluster_id,
        is_retired=False,
        name__in=spec.deployments,
    ).order_by("name")
    reasons = []
    for row in rows:
        if row.is_stopped or row.is_retiring:
            state = "is stopped" if row.is_stopped else "is being retired"
            reasons.append(f"{row.name} {state}, so its steps fail.")
        elif row.state == DeploymentState.DEGRADED:
            reasons.append(f"{row.name} is degraded: {row.state_reason}".rstrip(".: ") + ".")
    return reasons


def _carry_out(act: Act, pipeline: Pipeline, desired: _Desired) -> CommitResult | None:
    """None: the cluster itself was called, if there was anything to do."""
    backend = git_backend.backend_for_pipeline(pipeline)
    if backend is not None:
        return _commit(act, backend, desired)
    if act == Act.PUSH_GRAPH and desired.graph is not None:
        _apply(pipeline, desired.graph)
    elif act == Act.PUSH_ROUTE:
        _apply(pipeline, desired.route)
    elif act == Act.DELETE_ROUTE:
        _delete(pipeline, http_route.API_VERSION, http_route.KIND)
    elif act == Act.DELETE_GRAPH:
        _delete(pipeline, graph_manifests.API_VERSION, graph_manifests.KIND)
    return None


def _commit(act: Act, backend: GitBackend, desired: _Desired) -> CommitResult | None:
    """The GitOps operator does the rest, which later passes observe."""
    if act == Act.PUSH_GRAPH and desired.graph is not None:
        return backend.push("push router", [desired.graph])
    if act == Act.PUSH_ROUTE:
        return backend.push("route", [desired.route])
    if act == Act.DELETE_ROUTE:
        return backend.remove_route()
    if desired.gone:
        return None
    return backend.sync([] if desired.graph is None else [desired.graph, desired.route])


def _apply(pipeline: Pipeline, manifest: Manifest) -> None:
    objects.apply(cluster_id=pipeline.cluster_id, manifests=[manifest], force=True)


def _delete(pipeline: Pipeline, api_version: str, kind: str) -> None:
    objects.delete(
        cluster_id=pipeline.cluster_id,
        api_version=api_version,
        kind=kind,
        namespace=pipeline.namespace,
        name=pipeline.name,
    )


def _verdict(
    pipeline: Pipeline, desired: _Desired, live: Live, act: Act, committed: CommitResult | None
) -> Verdict:
    if act == Act.FINISH_RETIRING:
        return Verdict(state=DeploymentState.RETIRED)
    if act != Act.NONE:
        reason = _describe_effect(pipeline, committed)
        return Verdict(state=DeploymentState.PROGRESSING, reason=reason)
    if pipeline.is_stopped:
        return Verdict(
            state=DeploymentState.STOPPED, reason="Stopped. The deployments keep serving."
        )
    if desired.gone:
        return Verdict(state=DeploymentState.DEGRADED, reason=desired.gone)
    deadline = pipeline.progress_deadline_at
    is_late = deadline is not None and clock.now() >= deadline
    return judge(live, failing=desired.failing, is_late=is_late)


def _describe_effect(pipeline: Pipeline, committed: CommitResult | None) -> str:
    if committed is not None and committed.problem:
        return f"Git: {committed.problem.removeprefix('Git: ')}"
    if committed is not None:
        return f"Committed as {committed.sha[:8]}. The GitOps operator has not applied it yet."
    if pipeline.is_retiring:
        return "It is being removed."
    return "It is being stopped." if pipeline.is_stopped else "Applying to the cluster."


def _reverted(pipeline: Pipeline, act: Act, desired: _Desired, live: Live) -> str:
    """The drift of what had been as desired; empty for none."""
    if pipeline.observed_generation != pipeline.desired_generation or desired.graph is None:
        return ""
    if act == Act.PUSH_ROUTE:
        return "the route was edited" if live.route else "the route was deleted"
    if act != Act.PUSH_GRAPH:
        return ""
    if live.graph is None:
        return "the InferenceGraph was deleted"
    digest = metadata.DIGEST_ANNOTATION
    before = (live.graph["metadata"].get("annotations") or {}).get(digest)
    is_ours = before == desired.graph["metadata"]["annotations"][digest]
    changed = ", ".join(edits(desired.graph, live.graph)) or "labels or annotations"
    return f"edited on the cluster: {changed}" if is_ours else ""
