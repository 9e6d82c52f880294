"""The meaning of an observed pipeline, and the one effect to have next. Pure functions.

KServe sets Ready on a graph as soon as its Deployment has an Available condition, whatever its
status; so the Deployment itself is read too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from deployments.manifests.domain import diff, http_route
from deployments.manifests.domain.metadata import Manifest
from deployments.pipelines.domain.observed import GraphCondition
from deployments.states import DeploymentState

Json = Mapping[str, Any]


class Act(StrEnum):
    NONE = "none"
    PUSH_GRAPH = "push graph"
    PUSH_ROUTE = "push route"
    DELETE_ROUTE = "delete route"
    DELETE_GRAPH = "delete graph"
    DELETE_KEY = "delete key"
    FINISH_RETIRING = "finish retiring"


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """The objects on the cluster; None for a missing one. `router` is a Deployment, `key_filter` the
    HTTPRouteFilter that puts its key on requests.
    """

    graph: Json | None = None
    route: Json | None = None
    router: Json | None = None
    key_filter: Json | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineVerdict:
    state: DeploymentState
    reason: str = ""


def decide(
    graph: Manifest | None,
    route: Manifest,
    live: Live,
    *,
    key_filter: Manifest | None = None,
    waits: bool = False,
) -> Act:
    """Decide the next act. `graph` None means remove the pipeline; the route is removed before its backend.
    `key_filter` None means the pipeline calls no deployment that needs a key; `waits`: one of them does not
    accept the pipeline's key yet.
    """
    if graph is None:
        return _removal(live)
    if waits:
        return Act.PUSH_GRAPH if live.graph is None else Act.NONE
    has_router = live.router is not None
    is_behind = differs(route, live.route) or (
        key_filter is not None and differs(key_filter, live.key_filter)
    )
    # The key comes before the steps that need it.
    if key_filter is not None and has_router and live.graph is not None and is_behind:
        return Act.PUSH_ROUTE
    if differs(graph, live.graph):
        return Act.PUSH_GRAPH
    # Only once its backend Service exists.
    if has_router and is_behind:
        return Act.PUSH_ROUTE
    is_spare = key_filter is None and live.key_filter is not None
    return Act.DELETE_KEY if is_spare else Act.NONE


def _removal(live: Live) -> Act:
    if live.route is not None:
        return Act.DELETE_ROUTE
    if live.key_filter is not None:
        return Act.DELETE_KEY
    return Act.FINISH_RETIRING if live.graph is None else Act.DELETE_GRAPH


def differs(desired: Manifest, live: Json | None) -> bool:
    return live is None or _project(desired, live) != _owned(desired)


def edits(desired: Manifest, live: Json | None) -> list[str]:
    """Return the fields of the spec that someone changed. Empty without a live object."""
    if live is None:
        return []
    before, after = _owned(desired)["spec"], _project(desired, live).get("spec", {})
    return [name for name in sorted(before) if before[name] != after.get(name)]


def _owned(manifest: Manifest) -> dict[str, Any]:
    meta = manifest["metadata"]
    kept = {name: meta[name] for name in ("labels", "annotations") if name in meta}
    return {"metadata": kept, "spec": manifest["spec"]}


def _project(desired: Manifest, live: Json) -> dict[str, Any]:
    projected: dict[str, Any] = diff.project(live, _owned(desired))
    return projected


def judge(live: Live, *, failing: Sequence[str], is_late: bool) -> PipelineVerdict:
    """Judge the state of the pipeline. `failing` says why deployments behind it do not answer now."""
    trouble = _router_trouble(live) or _route_trouble(live)
    if trouble:
        if is_late:
            return PipelineVerdict(
                state=DeploymentState.DEGRADED, reason=f"{trouble} It is taking too long."
            )
        return PipelineVerdict(state=DeploymentState.PROGRESSING, reason=trouble)
    if failing:
        return PipelineVerdict(state=DeploymentState.DEGRADED, reason=" ".join(failing))
    return PipelineVerdict(state=DeploymentState.READY)


def conditions_of(live: Live) -> tuple[GraphCondition, ...]:
    """Return the conditions of the graph, then of its Deployment."""
    conditions = [_plain(condition) for condition in _conditions(live.graph)]
    available = _find(live.router, "Available")
    if available:
        conditions.append(replace(_plain(available), type="RouterAvailable"))
    return tuple(conditions)


def _plain(condition: Json) -> GraphCondition:
    names = ("type", "status", "reason", "message")
    return GraphCondition(**{name: str(condition.get(name, "")) for name in names})


def _router_trouble(live: Live) -> str:
    ready = _find(live.graph, "Ready")
    if ready and ready.get("status") == "False":
        return f"KServe: {_describe(ready)}."
    if not ready or live.router is None:
        return "KServe has not started the router yet."
    available = _find(live.router, "Available")
    generation = (live.router.get("metadata") or {}).get("generation")
    observed = (live.router.get("status") or {}).get("observedGeneration")
    if observed != generation:
        return "The router is being replaced."
    if available.get("status") != "True":
        return f"The router is not up: {_describe(available)}."
    return "" if ready.get("status") == "True" else "KServe does not report it ready yet."


def _route_trouble(live: Live) -> str:
    if live.route is None:
        return "It has no address yet."
    problem = http_route.problem_with(live.route)
    if problem is None:
        return "The gateway has not accepted the address yet."
    return f"The gateway: {problem}." if problem else ""


def _describe(condition: Json) -> str:
    reason = condition.get("message") or condition.get("reason") or "no reason given"
    return str(reason).rstrip(".")


def _conditions(item: Json | None) -> Sequence[Json]:
    return ((item or {}).get("status") or {}).get("conditions") or ()


def _find(item: Json | None, kind: str) -> Json:
    return next((row for row in _conditions(item) if row.get("type") == kind), {})
