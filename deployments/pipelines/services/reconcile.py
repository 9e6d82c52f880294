"""Make the cluster what pipelines want: observe, decide, one effect, record, look again.

Level-triggered, like deployments: every look starts from the row and the live objects. Both objects
are the portal's own, as the route of a deployment is, so what others edit in them is put right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from deployments.manifests.domain import http_route, metadata
from deployments.manifests.domain.metadata import Manifest
from deployments.models import Deployment, Pipeline
from deployments.pipelines.domain import manifests as graph_manifests
from deployments.pipelines.domain.pipeline_spec import PipelineSpec
from deployments.pipelines.domain.reconcile import Act, Live, Verdict, decide, edits, judge
from deployments.pipelines.selectors import pipelines
from deployments.pipelines.services import decisions, record
from deployments.pipelines.services.record import Looked
from deployments.preflight.services.dry_run import describe_error
from deployments.states import ChangeState, DeploymentState
from fleet.kube.domain import resource_types
from fleet.kube.domain.errors import ClusterError, Throttled, Unreachable
from fleet.kube.services import objects
from portal.core import clock, leases
from portal.core.leases import Lease

_LEASE_SECONDS: Final = 60
_SOON_SECONDS: Final = 1.0
_CALM_SECONDS: Final = 15.0
_CALM: Final = (DeploymentState.READY, DeploymentState.STOPPED)
_DEPLOYMENT: Final = (resource_types.DEPLOYMENT.api_version, resource_types.DEPLOYMENT.kind)
_KINDS: Final = (
    (graph_manifests.API_VERSION, graph_manifests.KIND),
    (http_route.API_VERSION, http_route.KIND),
    _DEPLOYMENT,
)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """`graph` None: the pipeline is to go, or `gone` names deployments that it can ask no more."""

    graph: Manifest | None
    route: Manifest
    silent: Sequence[str] = ()
    gone: str = ""


def sweep(*, limit: int = 200) -> int:
    """Look at what is due. A cluster that does not answer is asked once per sweep."""
    due = leases.due(Pipeline, limit=limit)
    silent: set[int] = set()
    places = dict(Pipeline.objects.filter(pk__in=due).values_list("pk", "cluster_id"))
    for pipeline_id in due:
        if places[pipeline_id] in silent:
            continue
        if isinstance(reconcile(pipeline_id=pipeline_id), Unreachable | Throttled):
            silent.add(places[pipeline_id])
    return len(due)


def reconcile(*, pipeline_id: int) -> ClusterError | None:
    """Do what is due for one pipeline; nothing when another worker holds it."""
    lease = leases.claim(Pipeline, pipeline_id, seconds=_LEASE_SECONDS)
    if lease is None:
        return None
    pipeline = Pipeline.objects.select_related("team", "cluster").get(pk=pipeline_id)
    _expire(pipeline)
    if pipeline.is_retired or not pipeline.desired_generation:
        waiting = pipelines.open_change_of(pipeline)
        leases.release(
            Pipeline, lease, next_check_at=waiting.deadline_at if waiting is not None else None
        )
        return None
    try:
        seconds = _look(pipeline, lease)
    except ClusterError as error:
        record.note_refusal(pipeline, lease, describe_error(error))
        asked = error.retry_after_seconds if isinstance(error, Throttled) else 0
        leases.back_off(Pipeline, lease, least_seconds=asked)
        return error
    later = None if seconds is None else clock.now() + timedelta(seconds=seconds)
    leases.release(Pipeline, lease, next_check_at=later)
    return None


def _expire(pipeline: Pipeline) -> None:
    change = pipelines.open_change_of(pipeline)
    if change is None or change.state != ChangeState.SUBMITTED or change.deadline_at is None:
        return
    if clock.now() >= change.deadline_at:
        decisions.expire(change)
        pipeline.refresh_from_db()


def _look(pipeline: Pipeline, lease: Lease) -> float | None:
    """Returns after how many seconds to look again; None for never."""
    live, wanted = _observe(pipeline), _wanted(pipeline)
    act = Act.NONE if wanted.gone else decide(wanted.graph, wanted.route, live)
    if act == Act.FINISH_RETIRING and not pipeline.is_retiring:
        # It is stopped, and nothing of it is left.
        act = Act.NONE
    if act != Act.NONE:
        if not leases.is_held(Pipeline, lease):
            return _SOON_SECONDS
        _carry_out(act, pipeline, wanted)
    looked = Looked(
        live=live,
        act=act,
        verdict=_verdict(pipeline, wanted, live, act),
        healed=_healed(pipeline, act, wanted, live),
    )
    record.record(pipeline, lease, looked)
    if act == Act.FINISH_RETIRING:
        return None
    is_calm = act == Act.NONE and looked.verdict.state in _CALM
    return _CALM_SECONDS if is_calm else _SOON_SECONDS


def _observe(pipeline: Pipeline) -> Live:
    labels = {graph_manifests.PIPELINE_ID_LABEL: str(pipeline.pk)}
    found = objects.list_several(
        cluster_id=pipeline.cluster_id,
        kinds=_KINDS,
        namespace=pipeline.namespace,
        labels=labels,
    )
    graph, route, router = (_named(rows, pipeline.name) for rows in found)
    return Live(graph=graph, route=route, router=router)


def _named(rows: Sequence[dict[str, Any]], name: str) -> dict[str, Any] | None:
    return next((row for row in rows if row["metadata"]["name"] == name), None)


def _wanted(pipeline: Pipeline) -> _Wanted:
    place, spec = pipelines.place_of(pipeline), pipelines.spec_of(pipeline)
    route = graph_manifests.http_route(place)
    if pipeline.is_retiring or pipeline.is_stopped or spec is None:
        return _Wanted(None, route)
    members = pipelines.members_asked(pipeline)
    gone = [name for name in spec.deployments if name not in members or not members[name].path]
    if gone:
        words = f"{', '.join(gone)} no longer exists. Change or retire the pipeline."
        return _Wanted(None, route, gone=words)
    graph, route = pipelines.manifests_of(pipeline, spec, members)
    return _Wanted(graph, route, silent=_silent(pipeline, spec))


def _silent(pipeline: Pipeline, spec: PipelineSpec) -> list[str]:
    rows = Deployment.objects.filter(
        team=pipeline.team_id,
        cluster=pipeline.cluster_id,
        is_retired=False,
        name__in=spec.deployments,
    ).order_by("name")
    found = []
    for row in rows:
        if row.is_stopped or row.is_retiring:
            words = "is stopped" if row.is_stopped else "is being retired"
            found.append(f"{row.name} {words}, so its steps fail.")
        elif row.state == DeploymentState.DEGRADED:
            found.append(f"{row.name} is degraded: {row.state_reason}".rstrip(".: ") + ".")
    return found


def _carry_out(act: Act, pipeline: Pipeline, wanted: _Wanted) -> None:
    if act == Act.PUSH_GRAPH and wanted.graph is not None:
        _apply(pipeline, wanted.graph)
    elif act == Act.PUSH_ROUTE:
        _apply(pipeline, wanted.route)
    elif act == Act.DELETE_ROUTE:
        _delete(pipeline, http_route.API_VERSION, http_route.KIND)
    elif act == Act.DELETE_GRAPH:
        _delete(pipeline, graph_manifests.API_VERSION, graph_manifests.KIND)


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


def _verdict(pipeline: Pipeline, wanted: _Wanted, live: Live, act: Act) -> Verdict:
    if act == Act.FINISH_RETIRING:
        return Verdict(state=DeploymentState.RETIRED)
    if pipeline.is_retiring:
        return Verdict(state=DeploymentState.PROGRESSING, reason="It is being removed.")
    if pipeline.is_stopped:
        return _stopped(act)
    if wanted.gone:
        return Verdict(state=DeploymentState.DEGRADED, reason=wanted.gone)
    if act != Act.NONE:
        return Verdict(state=DeploymentState.PROGRESSING, reason="Applying to the cluster.")
    deadline = pipeline.progress_deadline_at
    is_late = deadline is not None and clock.now() >= deadline
    return judge(live, silent=wanted.silent, is_late=is_late)


def _stopped(act: Act) -> Verdict:
    if act == Act.NONE:
        return Verdict(
            state=DeploymentState.STOPPED, reason="Stopped. The deployments keep serving."
        )
    return Verdict(state=DeploymentState.PROGRESSING, reason="It is being stopped.")


def _healed(pipeline: Pipeline, act: Act, wanted: _Wanted, live: Live) -> str:
    """What someone had edited of what was already as wanted; empty when nobody had."""
    if pipeline.observed_generation != pipeline.desired_generation or wanted.graph is None:
        return ""
    if act == Act.PUSH_ROUTE:
        return "the route was edited" if live.route else "the route was deleted"
    if act != Act.PUSH_GRAPH:
        return ""
    if live.graph is None:
        return "the InferenceGraph was deleted"
    digest = metadata.DIGEST_ANNOTATION
    before = (live.graph["metadata"].get("annotations") or {}).get(digest)
    is_ours = before == wanted.graph["metadata"]["annotations"][digest]
    changed = ", ".join(edits(wanted.graph, live.graph)) or "labels or annotations"
    return f"edited on the cluster: {changed}" if is_ours else ""
