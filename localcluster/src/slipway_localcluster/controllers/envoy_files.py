"""Writes the files that Envoy watches, in an order that loses no request."""

import http.client
import json
import socket
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from time import monotonic

from slipway_localcluster.controllers import (
    envoy_bootstrap,
    envoy_config,
    free_ports,
    istio_policies,
    processes,
    provider_tokens,
)
from slipway_localcluster.controllers.envoy_config import Endpoint, Route
from slipway_localcluster.controllers.istio_policies import OPEN_GATEWAY, GatewayAccess
from slipway_localcluster.controllers.route_policies import Key
from slipway_localcluster.errors import JsonObject

BOOTSTRAP = "bootstrap.json"
_RESOURCE = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig"
_ADMIN_PORT, _STATS_PORT = "admin_port", "stats_port"
# How long a cluster outlives its last route, for requests in flight.
_KEEP_SECONDS = 5.0
# A new cluster gets a route once Envoy reports it, or after this long without an answer.
_WARM_SECONDS = 5.0
_ADMIN_TIMEOUT_SECONDS = 0.5


class EnvoyFiles:
    """Writes endpoints first, then clusters, then routes; removes in the opposite order, later."""

    def __init__(self, directory: Path, gateway_port: int) -> None:
        self._directory = directory
        self._live = directory / "live"
        for folder in ("clusters", "routes", "endpoints", envoy_bootstrap.FILTERS):
            (self._live / folder).mkdir(parents=True, exist_ok=True)
        self._needed_until: dict[str, float] = {}
        self._added_at: dict[str, float] = {}
        self._key_servers: Sequence[JsonObject] = ()
        self._warm: set[str] = set()
        self._held: list[socket.socket] = []
        self.admin_port, self.stats_port = self._choose_ports(gateway_port)
        self._write_initial_files(gateway_port)

    def _choose_ports(self, gateway_port: int) -> tuple[int, int]:
        """Return the ports of the administration and of its metrics, and hold them from now on.

        They stay the same over restarts, so that a running Envoy and a new cluster agree. The gateway's own
        port may still be free at this time, so it is excluded.
        """
        recorded = [self._directory / name for name in (_ADMIN_PORT, _STATS_PORT)]
        if all(path.is_file() for path in recorded):
            admin, stats = (int(path.read_text()) for path in recorded)
            is_usable = self._hold(admin, stats) or self._runs_own_envoy(admin)
            if is_usable and gateway_port not in (admin, stats):
                return admin, stats
        while True:
            admin, stats, *_ = (port for port in free_ports.take(3) if port != gateway_port)
            if self._hold(admin, stats):
                break
        for path, port in zip(recorded, (admin, stats), strict=True):
            path.write_text(str(port))
        return admin, stats

    def _hold(self, *ports: int) -> bool:
        sockets = [free_ports.hold(port) for port in ports]
        self._held = [held for held in sockets if held is not None]
        return None not in sockets

    def _runs_own_envoy(self, admin_port: int) -> bool:
        """Return whether the Envoy that answers there reads the bootstrap file of this folder."""
        options = (_admin_answer(admin_port, "/server_info") or {}).get(
            "command_line_options"
        ) or {}
        path = options.get("config_path", "")
        return bool(path) and Path(path).resolve() == (self._directory / BOOTSTRAP).resolve()

    def _write_initial_files(self, gateway_port: int) -> None:
        for path, empty in (
            (self._live / "clusters" / "clusters.json", envoy_config.clusters([], directory="")),
            (self._live / "routes" / "routes.json", envoy_config.routes([])),
            *self._filters(OPEN_GATEWAY, {}),
        ):
            if not path.is_file():
                _write(path, empty)
        self._needed_until = {
            path.stem: monotonic() + _KEEP_SECONDS for path in self._endpoint_paths()
        }
        self._added_at = {name: monotonic() for name in self._needed_until}
        started = envoy_bootstrap.bootstrap(
            directory=str(self._live.resolve()),
            gateway_port=gateway_port,
            admin_port=self.admin_port,
            stats_port=self.stats_port,
        )
        _write(self._directory / BOOTSTRAP, started)

    def update_filters(self, access: GatewayAccess, tokens: Mapping[Key, object]) -> None:
        """Update the filters, before the routes that need them. `tokens` are what routes require, if they are
        ProviderTokens.
        """
        self._key_servers = provider_tokens.key_servers(tokens)
        self._write_clusters(list(self._needed_until))
        for path, filters in self._filters(access, tokens):
            _write(path, filters)

    def _filters(
        self, access: GatewayAccess, tokens: Mapping[Key, object]
    ) -> list[tuple[Path, JsonObject]]:
        folder = self._live / envoy_bootstrap.FILTERS
        configs = {
            **istio_policies.filters(access),
            provider_tokens.TOKENS: provider_tokens.tokens_filter(tokens),
        }
        return [
            (
                folder / f"{name}.json",
                {"resources": [{"@type": _RESOURCE, "name": name, "typed_config": config}]},
            )
            for name, config in configs.items()
        ]

    def update(self, routes: Sequence[Route], endpoints: Mapping[str, Sequence[Endpoint]]) -> bool:
        """Write changed files; False when a step has to wait for the next pass."""
        now = monotonic()
        for name, listed in endpoints.items():
            _write(self._endpoint_path(name), envoy_config.endpoints(name, listed))
            self._needed_until[name] = now + _KEEP_SECONDS
            self._added_at.setdefault(name, now)
        kept = [name for name, until in self._needed_until.items() if until > now]
        self._write_clusters(kept)
        is_warm = self._are_warm(endpoints.keys())
        if is_warm:
            _write(self._live / "routes" / "routes.json", envoy_config.routes(routes))
        for name in self._needed_until.keys() - set(kept):
            self._remove(name)
        return is_warm and len(kept) == len(endpoints)

    def _write_clusters(self, names: Sequence[str]) -> None:
        desired = envoy_config.clusters(
            names, directory=str(self._live.resolve()), others=self._key_servers
        )
        _write(self._live / "clusters" / "clusters.json", desired)

    def _remove(self, name: str) -> None:
        del self._needed_until[name]
        self._added_at.pop(name, None)
        self._warm.discard(name)
        self._endpoint_path(name).unlink(missing_ok=True)

    def _are_warm(self, names: Collection[str]) -> bool:
        """A route to a cluster that Envoy has not loaded yet would answer 503."""
        cold = set(names) - self._warm
        if not cold:
            return True
        reported = _reported_clusters(self.admin_port)
        if reported is None:
            # No Envoy runs; at its start it reads complete files.
            return True
        deadline = monotonic() - _WARM_SECONDS
        late = {name for name in cold if self._added_at.get(name, 0.0) < deadline}
        self._warm |= (cold & reported) | late
        return set(names) <= self._warm

    def _endpoint_path(self, cluster: str) -> Path:
        return self._live / "endpoints" / f"{cluster}.json"

    def _endpoint_paths(self) -> list[Path]:
        return sorted((self._live / "endpoints").glob("*.json"))


def _reported_clusters(admin_port: int) -> set[str] | None:
    """Return the clusters that a running Envoy has loaded. None if no Envoy answers."""
    listed = _admin_answer(admin_port, "/clusters?format=json")
    if listed is None:
        return None
    return {str(item["name"]) for item in listed.get("cluster_statuses") or ()}


def _admin_answer(admin_port: int, path: str) -> JsonObject | None:
    """Return the JSON that Envoy's administration answers. None without an answer."""
    connection = http.client.HTTPConnection(
        processes.LOCALHOST, admin_port, timeout=_ADMIN_TIMEOUT_SECONDS
    )
    try:
        connection.request("GET", path)
        answer = json.loads(connection.getresponse().read())
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()
    return answer if isinstance(answer, dict) else None


def _write(path: Path, content: JsonObject) -> None:
    """Write only a change, and rename the file into place, which is the event that Envoy watches."""
    text = json.dumps(content, indent=1, sort_keys=True)
    if path.is_file() and path.read_text() == text:
        return
    partial = path.with_suffix(".partial")
    partial.write_text(text)
    partial.replace(path)
