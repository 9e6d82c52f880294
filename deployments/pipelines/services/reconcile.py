"""Makes the cluster match pipelines' desired state: observe, decide, one effect, record, requeue.

Level-triggered, like deployments: every pass starts from the row and the live objects. Both objects
are the portal's own, as the route of a deployment is, so drift in them is reverted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

from deployments.delivery.services import git_backend
from deployments.delivery.services.git_backend import CommitResult, GitBackend
from deployments.manifests.domain import http_route, metadata
from deployments.manifests.domain.access import caller_keys
from deployments.manifests.domain.metadata import Manifest
from deployments.models import Pipeline
from deployments.pipelines.domain import manifests as graph_manifests
from deployments.pipelines.domain.reconcile import Act, Live, PipelineVerdict, decide, edits, judge
from deployments.pipelines.selectors import member_faults, pipelines
from deployments.pipelines.services import record, router_keys
from deployments.pipelines.services.record import PipelineObservation
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
_FILTER: Final = (caller_keys.API_VERSION, graph_manifests.FILTER_KIND)
_DELETIONS: Final = {
    Act.DELETE_ROUTE: (http_route.API_VERSION, http_route.KIND),
    Act.DELETE_GRAPH: (graph_manifests.API_VERSION, graph_manifests.KIND),
    Act.DELETE_KEY: _FILTER,
}


@dataclass(frozen=True, slots=True)
class _Desired:
    """The desired manifests. `graph` None: remove the pipeline, or `gone` says which deployments no longer
    exist.
    """

    graph: Manifest | None
    route: Manifest
    failing: Sequence[str] = ()
    gone: str = ""
    # Where some of its members need its key.
    key_filter: Manifest | None = None
    members: Sequence[str] = ()
    waits_for: str = ""

    @property
    def route_manifests(self) -> list[Manifest]:
        """The filter before the route that names it."""
        return [self.route] if self.key_filter is None else [self.key_filter, self.route]


def sweep(*, limit: int = 200) -> int:
    """Reconcile the pipelines that are due, once. A cluster that does not answer is called once per sweep."""
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
    """Run one pass and return the seconds until the next. None for never."""
    desired = _with_key(pipeline, _desired_of(pipeline))
    has_keys = router_keys.has_open(pipeline)
    live = _observe(pipeline, has_keys=has_keys)
    act = Act.NONE if desired.gone else _decide(desired, live)
    if has_keys and desired.key_filter is None and live.key_filter is None and not desired.gone:
        router_keys.end(pipeline)
    if act == Act.FINISH_RETIRING and not pipeline.is_retiring:
        # It is stopped, and nothing of it is left on the cluster.
        act = Act.NONE
    if act != Act.NONE and not leases.is_held(Pipeline, lease):
        return _SOON_SECONDS
    committed = _carry_out(act, pipeline, desired)
    observation = PipelineObservation(
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


def _decide(desired: _Desired, live: Live) -> Act:
    return decide(
        desired.graph,
        desired.route,
        live,
        key_filter=desired.key_filter,
        waits=bool(desired.waits_for),
    )


def _with_key(pipeline: Pipeline, desired: _Desired) -> _Desired:
    """Prepare the key, so that the deployments accept it and the gateway has it before the route that puts it
    on requests.
    """
    if desired.key_filter is None:
        return desired
    key = router_keys.prepare(pipeline, desired.members)
    if key.row is not None:
        router_keys.write(pipeline, key.row)
    return replace(desired, waits_for=key.waits_for)


def _observe(pipeline: Pipeline, *, has_keys: bool) -> Live:
    """Read the live objects. A pipeline without a key needs no permission to list filters."""
    labels = {metadata.PIPELINE_ID_LABEL: str(pipeline.pk)}
    listed = objects.list_several(
        cluster_id=pipeline.cluster_id,
        kinds=[*_KINDS, *([_FILTER] if has_keys else [])],
        namespaces=[pipeline.namespace],
        labels=labels,
    )
    graph, route, router, *filters = (_named(rows, pipeline.name) for rows in listed)
    return Live(graph=graph, route=route, router=router, key_filter=next(iter(filters), None))


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
    graph, *filters, route = rendered.manifests
    failing = member_faults.failing(pipeline, spec)
    # What the cluster could do when it was requested it may not do any more.
    failing += [
        members[name].why_not
        for name in rendered.protected
        if "needs a key" in members[name].why_not
    ]
    return _Desired(
        graph,
        route,
        failing=failing,
        key_filter=next(iter(filters), None),
        members=spec.deployments,
    )


def _carry_out(act: Act, pipeline: Pipeline, desired: _Desired) -> CommitResult | None:
    """Carry out one act and return the commit. None if the cluster itself was called, or there was nothing to
    do.
    """
    if act == Act.DELETE_KEY:
        router_keys.remove(pipeline)
    backend = git_backend.backend_for_pipeline(pipeline)
    if backend is not None:
        return _commit(act, backend, desired)
    if act == Act.PUSH_GRAPH and desired.graph is not None:
        _apply(pipeline, desired.graph)
    elif act == Act.PUSH_ROUTE:
        for manifest in desired.route_manifests:
            _apply(pipeline, manifest)
    elif act in _DELETIONS:
        _delete(pipeline, *_DELETIONS[act])
    return None


def _commit(act: Act, backend: GitBackend, desired: _Desired) -> CommitResult | None:
    """Commit one act. The GitOps operator does the rest, which later passes observe."""
    if act == Act.PUSH_GRAPH and desired.graph is not None:
        return backend.push("push router", [desired.graph])
    if act == Act.PUSH_ROUTE:
        return backend.push("route", desired.route_manifests)
    if act == Act.DELETE_ROUTE:
        return backend.remove_route()
    if desired.gone:
        return None
    return backend.sync([] if desired.graph is None else [desired.graph, *desired.route_manifests])


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
) -> PipelineVerdict:
    if act == Act.FINISH_RETIRING:
        return PipelineVerdict(state=DeploymentState.RETIRED)
    if act != Act.NONE:
        reason = _describe_effect(pipeline, committed)
        return PipelineVerdict(state=DeploymentState.PROGRESSING, reason=reason)
    if pipeline.is_stopped:
        return PipelineVerdict(
            state=DeploymentState.STOPPED, reason="Stopped. The deployments keep serving."
        )
    if desired.gone:
        return PipelineVerdict(state=DeploymentState.DEGRADED, reason=desired.gone)
    if desired.waits_for:
        reason = f"The gateway does not accept the pipeline's key for {desired.waits_for} yet."
        return PipelineVerdict(state=DeploymentState.PROGRESSING, reason=reason)
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
    """Return the drift of what had been as desired. Empty for none."""
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
