"""Starts the local cluster's own Python router in place of KServe's."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from slipway_localcluster import graph_router
from slipway_localcluster.controllers import container_env, triton
from slipway_localcluster.errors import JsonObject

IMAGE = "kserve/router:local"
PORT = 8080
_GRAPH = "--graph-json"
PROPAGATE_HEADERS = "PROPAGATE_HEADERS"


def is_router(container: JsonObject) -> bool:
    return str(container.get("image", "")).partition(":")[0] == IMAGE.partition(":")[0]


def plan_launch(
    container: JsonObject, choose_ports: Callable[[int], Sequence[int]]
) -> triton.Launch:
    """Raises BadArguments for a router without a graph."""
    arguments = [str(item) for item in container.get("args") or ()]
    if _GRAPH not in arguments[:-1]:
        raise triton.BadArguments(f"the router needs {_GRAPH}")
    graph = arguments[arguments.index(_GRAPH) + 1]
    (port,) = choose_ports(1)
    command = (sys.executable, "-m", graph_router.__name__, _GRAPH, graph, "--port", str(port))
    patterns = container_env.plain_values(container).get(PROPAGATE_HEADERS, "")
    propagated = ("--propagate-headers", patterns) if patterns else ()
    return triton.Launch(
        command=(*command, *propagated),
        ports={PORT: port},
        http_port=port,
        repositories=(),
        ignored=(),
    )


def environment() -> Mapping[str, str]:
    """Return the environment of the router: only what it needs to import this package."""
    return {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "PYTHONPATH": str(Path(graph_router.__file__).parents[1]),
    }
