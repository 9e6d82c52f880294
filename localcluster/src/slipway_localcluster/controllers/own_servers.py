"""Programs of the local cluster that run in place of a container's image."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from slipway_localcluster.controllers import graph_container, language_container, triton
from slipway_localcluster.errors import JsonObject


@dataclass(frozen=True, slots=True)
class OwnServer:
    replaces: Callable[[JsonObject], bool]
    plan_launch: Callable[[JsonObject, Callable[[int], Sequence[int]]], triton.Launch]
    environment: Callable[[], Mapping[str, str]]


ROUTER = OwnServer(
    graph_container.is_router, graph_container.plan_launch, graph_container.environment
)
LANGUAGE_SERVER = OwnServer(
    language_container.is_language_server,
    language_container.plan_launch,
    language_container.environment,
)


def server_for(container: JsonObject) -> OwnServer | None:
    """Return the server that replaces the container's image. None if the image itself is needed."""
    servers = (ROUTER, LANGUAGE_SERVER)
    return next((server for server in servers if server.replaces(container)), None)
