"""The Gateway `slipway-gateway/slipway` and its HTTPRoutes, carried out by a real Envoy."""

from collections.abc import Sequence
from pathlib import Path

from fleet.localcluster.controllers import conditions, http_routes
from fleet.localcluster.controllers.envoy_config import Endpoint, Route
from fleet.localcluster.controllers.envoy_files import EnvoyFiles
from fleet.localcluster.controllers.http_routes import BackendService, UnsupportedRoute
from fleet.localcluster.controllers.ownership import is_deleted, write_status
from fleet.localcluster.controllers.rounds import for_each
from fleet.localcluster.errors import JsonObject
from fleet.localcluster.kinds import GATEWAY, GATEWAY_CLASS, HTTP_ROUTE, NAMESPACE, POD, SERVICE
from fleet.localcluster.store import Store

CLASS_NAME = "slipway-envoy"
NAMESPACE_NAME, GATEWAY_NAME = "slipway-gateway", "slipway"
_ENVOY_DIRECTORY = "envoy"


class GatewayController:
    """Without a gateway port it keeps statuses only."""

    def __init__(self, store: Store, *, data_dir: Path, port: int | None) -> None:
        self._store = store
        self._port = port
        self._files = EnvoyFiles(data_dir / _ENVOY_DIRECTORY, port) if port else None

    def seed(self) -> None:
        """Create what a platform team would have installed."""
        if self._store.find(NAMESPACE, None, NAMESPACE_NAME) is None:
            self._store.create(NAMESPACE, {"metadata": {"name": NAMESPACE_NAME}})
        if self._store.find(GATEWAY_CLASS, None, CLASS_NAME) is None:
            spec = {"controllerName": http_routes.CONTROLLER}
            self._store.create(GATEWAY_CLASS, {"metadata": {"name": CLASS_NAME}, "spec": spec})
        listener = {
            "name": "http",
            "protocol": "HTTP",
            "port": self._port or 80,
            "allowedRoutes": {"namespaces": {"from": "All"}},
        }
        gateway = {
            "metadata": {"name": GATEWAY_NAME, "namespace": NAMESPACE_NAME},
            "spec": {"gatewayClassName": CLASS_NAME, "listeners": [listener]},
        }
        known = self._store.find(GATEWAY, NAMESPACE_NAME, GATEWAY_NAME)
        if known is None:
            self._store.create(GATEWAY, gateway)
        elif known["spec"] != gateway["spec"]:
            self._store.replace(GATEWAY, {**known, "spec": gateway["spec"]})

    def reconcile(self) -> None:
        services = {
            (item["metadata"]["namespace"], item["metadata"]["name"]): item
            for item in self._store.list(SERVICE)
            if not is_deleted(item)
        }
        pods = self._store.list(POD)
        routes: list[Route] = []
        endpoints: dict[str, Sequence[Endpoint]] = {}
        attached: list[JsonObject] = []

        def reconcile_one(route: JsonObject) -> None:
            parents = [
                item for item in route["spec"].get("parentRefs") or () if _is_ours(item, route)
            ]
            if is_deleted(route) or not parents:
                return
            backends = http_routes.backends_of(route)
            missing = [_label(item) for item in backends if not _exists(item, services)]
            problem = None
            try:
                routes.extend(http_routes.routes_of(route))
            except UnsupportedRoute as error:
                problem = str(error)
            for item in backends:
                service = services.get((item.namespace, item.name))
                found = http_routes.endpoints_of(service, item.port, pods) if service else []
                endpoints[item.cluster] = found
            attached.append(route)
            status = http_routes.status_of(route, parents, problem, missing)
            write_status(self._store, HTTP_ROUTE, route, status)

        for_each(self._store.list(HTTP_ROUTE), reconcile_one)
        if self._files is not None:
            self._files.update(routes, endpoints)
        self._report(len(attached))

    def _report(self, route_count: int) -> None:
        for kind in self._store.list(GATEWAY_CLASS):
            if kind["spec"].get("controllerName") == http_routes.CONTROLLER:
                accepted = conditions.condition("Accepted", conditions.TRUE, reason="Accepted")
                known = (kind.get("status") or {}).get("conditions")
                status = {
                    "conditions": conditions.merge(known, [accepted]),
                    "supportedFeatures": [{"name": name} for name in http_routes.FEATURES],
                }
                write_status(self._store, GATEWAY_CLASS, kind, status)
        gateway = self._store.find(GATEWAY, NAMESPACE_NAME, GATEWAY_NAME)
        if gateway is not None:
            write_status(self._store, GATEWAY, gateway, self._gateway_status(gateway, route_count))

    def _gateway_status(self, gateway: JsonObject, route_count: int) -> JsonObject:
        generation = gateway["metadata"]["generation"]
        if self._port:
            programmed = conditions.condition("Programmed", conditions.TRUE, reason="Programmed")
        else:
            programmed = conditions.condition(
                "Programmed",
                conditions.FALSE,
                reason="AddressNotAssigned",
                message="the local cluster was started without --gateway-port",
            )
        accepted = conditions.condition("Accepted", conditions.TRUE, reason="Accepted")
        wanted = [{**item, "observedGeneration": generation} for item in (accepted, programmed)]
        before = gateway.get("status") or {}
        merged = conditions.merge(before.get("conditions"), wanted)
        listener = {
            "name": "http",
            "attachedRoutes": route_count,
            "supportedKinds": [{"group": HTTP_ROUTE.group, "kind": HTTP_ROUTE.kind}],
            "conditions": merged,
        }
        addresses = [{"type": "IPAddress", "value": "127.0.0.1"}] if self._port else []
        return {"addresses": addresses, "conditions": merged, "listeners": [listener]}


def _is_ours(parent: JsonObject, route: JsonObject) -> bool:
    namespace = parent.get("namespace") or route["metadata"]["namespace"]
    return (namespace, parent["name"]) == (NAMESPACE_NAME, GATEWAY_NAME)


def _exists(backend: BackendService, services: dict[tuple[str, str], JsonObject]) -> bool:
    service = services.get((backend.namespace, backend.name))
    listed = (service or {"spec": {}})["spec"].get("ports") or ()
    return any(int(item["port"]) == backend.port for item in listed)


def _label(backend: BackendService) -> str:
    return f"{backend.namespace}/{backend.name}:{backend.port}"
