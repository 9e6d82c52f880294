"""What a look at a pipeline on its cluster means, and the one thing to do next: pure.

KServe says Ready of a graph as soon as its Deployment has a condition about being available,
whatever that says; so the Deployment itself is asked too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from deployments.manifests.domain import diff, http_route
from deployments.manifests.domain.metadata import Manifest
from deployments.states import DeploymentState

Json = Mapping[str, Any]


class Act(StrEnum):
    NONE = "none"
    PUSH_GRAPH = "push graph"
    PUSH_ROUTE = "push route"
    DELETE_ROUTE = "delete route"
    DELETE_GRAPH = "delete graph"
    FINISH_RETIRING = "finish retiring"


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """The objects as the cluster holds them; None where there is none. `router` is a Deployment."""

    graph: Json | None = None
    route: Json | None = None
    router: Json | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    state: DeploymentState
    reason: str = ""


def decide(graph: Manifest | None, route: Manifest, live: Live) -> Act:
    """`graph` None: the pipeline is to go. The route is removed before what stands behind it."""
    if graph is None:
        if live.route is not None:
            return Act.DELETE_ROUTE
        return Act.FINISH_RETIRING if live.graph is None else Act.DELETE_GRAPH
    if differs(graph, live.graph):
        return Act.PUSH_GRAPH
    # Not before there is a Service that it can lead to.
    if live.router is not None and differs(route, live.route):
        return Act.PUSH_ROUTE
    return Act.NONE


def differs(wanted: Manifest, live: Json | None) -> bool:
    return live is None or _shown(wanted, live) != _spoken(wanted)


def edits(wanted: Manifest, live: Json | None) -> list[str]:
    """Fields of the spec that someone changed, in words; empty where there is nothing live."""
    if live is None:
        return []
    before, after = _spoken(wanted)["spec"], _shown(wanted, live).get("spec", {})
    return [name for name in sorted(before) if before[name] != after.get(name)]


def _spoken(manifest: Manifest) -> dict[str, Any]:
    meta = manifest["metadata"]
    kept = {name: meta[name] for name in ("labels", "annotations") if name in meta}
    return {"metadata": kept, "spec": manifest["spec"]}


def _shown(wanted: Manifest, live: Json) -> dict[str, Any]:
    found: dict[str, Any] = diff.project(live, _spoken(wanted))
    return found


def judge(live: Live, *, silent: Sequence[str], is_late: bool) -> Verdict:
    """`silent`: deployments behind it that do not answer now, with why."""
    trouble = _router_trouble(live) or _route_trouble(live)
    if trouble:
        if is_late:
            return Verdict(
                state=DeploymentState.DEGRADED, reason=f"{trouble} It is taking too long."
            )
        return Verdict(state=DeploymentState.PROGRESSING, reason=trouble)
    if silent:
        return Verdict(state=DeploymentState.DEGRADED, reason=" ".join(silent))
    return Verdict(state=DeploymentState.READY)


def conditions_of(live: Live) -> list[dict[str, str]]:
    """KServe's of the graph, then what its Deployment says."""
    found = [
        {
            "type": str(one.get("type", "")),
            "status": str(one.get("status", "")),
            "reason": str(one.get("reason", "")),
            "message": str(one.get("message", "")),
        }
        for one in _conditions(live.graph)
    ]
    available = _find(live.router, "Available")
    if available:
        found.append(
            {
                "type": "RouterAvailable",
                "status": str(available.get("status", "")),
                "reason": str(available.get("reason", "")),
                "message": str(available.get("message", "")),
            }
        )
    return found


def _router_trouble(live: Live) -> str:
    ready = _find(live.graph, "Ready")
    if ready and ready.get("status") == "False":
        return f"KServe: {_words(ready)}."
    if not ready or live.router is None:
        return "KServe has not started the router yet."
    available = _find(live.router, "Available")
    generation = (live.router.get("metadata") or {}).get("generation")
    seen = (live.router.get("status") or {}).get("observedGeneration")
    if seen != generation:
        return "The router is being replaced."
    if available.get("status") != "True":
        return f"The router is not up: {_words(available)}."
    return "" if ready.get("status") == "True" else "KServe does not report it ready yet."


def _route_trouble(live: Live) -> str:
    if live.route is None:
        return "It has no address yet."
    problem = http_route.problem_with(live.route)
    if problem is None:
        return "The gateway has not accepted the address yet."
    return f"The gateway: {problem}." if problem else ""


def _words(condition: Json) -> str:
    told = condition.get("message") or condition.get("reason") or "no reason given"
    return str(told).rstrip(".")


def _conditions(item: Json | None) -> Sequence[Json]:
    return ((item or {}).get("status") or {}).get("conditions") or ()


def _find(item: Json | None, kind: str) -> Json:
    return next((one for one in _conditions(item) if one.get("type") == kind), {})
