"""Counts what each client of API keys or tokens is served, by Envoy's virtual clusters: pure.

The name of a virtual cluster is `namespace/route/client`, with a slash for each dot of the client: Envoy cuts
the names of its counters at dots, and no Secret's keys have slashes. Other clients, which a claim of a token
names, are `~` and the hexadecimal digits of their UTF-8.
"""

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Protocol

from slipway_localcluster.controllers.route_policies import Key
from slipway_localcluster.errors import JsonObject

_KEY_OF_SECRET = re.compile(r"[-._a-zA-Z0-9]+")


@dataclass(frozen=True, slots=True)
class CountedClients:
    """The clients whose requests to a route are counted. `header` names the client once its key was accepted."""

    route: Key
    header: str
    clients: tuple[str, ...]


class Access(Protocol):
    """Who is let through, and the header that then has the client's name."""

    @property
    def clients(self) -> Sequence[str]: ...

    @property
    def client_header(self) -> str: ...


class ClientMemory:
    """Clients whose keys ended while this process runs: their last requests are still to be read."""

    def __init__(self) -> None:
        self._clients: dict[Key, Set[str]] = {}

    def count_clients(self, access: Mapping[Key, Access]) -> dict[Key, CountedClients]:
        """Return the clients to count by route. Routes without keys are forgotten."""
        current = {key: set(item.clients) for key, item in access.items()}
        self._clients = {
            key: clients | self._clients.get(key, set()) for key, clients in current.items()
        }
        return {
            key: CountedClients(key, item.client_header, tuple(sorted(self._clients[key])))
            for key, item in access.items()
            if item.client_header
        }


class RouteMatch(Protocol):
    """The match of a route: what a request must have."""

    @property
    def path(self) -> str: ...

    @property
    def is_exact(self) -> bool: ...

    @property
    def headers(self) -> Sequence[tuple[str, str]]: ...


def virtual_clusters(counted: CountedClients, match: RouteMatch) -> list[JsonObject]:
    """The path is part of them: on open routes callers may send any header."""
    end = r"(\?.*)?" if match.is_exact else r"([/?].*)?"
    prefix = "" if match.path == "/" and not match.is_exact else re.escape(match.path)
    path = {"name": ":path", "string_match": {"safe_regex": {"regex": f"^{prefix}{end}$"}}}
    others = exact_headers(match.headers)
    return [
        {
            "name": "/".join((*counted.route, _name_of(client))),
            "headers": [*exact_headers([(counted.header, client)]), path, *others],
        }
        for client in counted.clients
    ]


def _name_of(client: str) -> str:
    if _KEY_OF_SECRET.fullmatch(client):
        return client.replace(".", "/")
    return f"~{client.encode().hex()}"


def exact_headers(pairs: Sequence[tuple[str, str]]) -> list[JsonObject]:
    return [{"name": name, "string_match": {"exact": value}} for name, value in pairs]
