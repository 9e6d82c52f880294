"""Programs a real Envoy with the HTTPRoutes of the Gateway `slipway-gateway/slipway`."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from slipway_localcluster.client.cluster_api import ClusterApi
from slipway_localcluster.controllers import conditions, gateway_pod, http_routes
from slipway_localcluster.controllers.envoy_config import OPEN, Endpoint, Route
from slipway_localcluster.controllers.envoy_files import EnvoyFiles
from slipway_localcluster.controllers.gateway_policies import GatewayPolicies
from slipway_localcluster.controllers.http_routes import BackendService, UnsupportedRoute
from slipway_localcluster.controllers.ownership import is_deleted, is_same_status
from slipway_localcluster.controllers.reconcile import reconcile_each
from slipway_localcluster.controllers.route_policies import Key
from slipway_localcluster.errors import Conflict, JsonObject, NotFound
from slipway_localcluster.kinds import (
    GATEWAY,
    GATEWAY_CLASS,
    HTTP_ROUTE,
    NAMESPACE,
    POD,
    SERVICE,
    Kind,
)

CLASS_NAME = "slipway-envoy"
NAMESPACE_NAME, GATEWAY_NAME = "slipway-gateway", "slipway"
_ENVOY_DIRECTORY = "envoy"
_GATEWAY_REFERENCE = {
    "group": GATEWAY.group,
    "kind": GATEWAY.kind,
    "namespace": NAMESPACE_NAME,
    "name": GATEWAY_NAME,
}


class GatewayController:
    """The controller of the Gateway and its routes. Without a port it maintains statuses only."""

    def __init__(self, api: ClusterApi, *, data_dir: Path, port: int | None) -> None:
        self._api = api
        self._port = port
        self._policies = GatewayPolicies(api, _GATEWAY_REFERENCE, self._write_status)
        self._files = EnvoyFiles(data_dir / _ENVOY_DIRECTORY, port) if port else None

    def seed(self) -> None:
        """Create the Gateway that a platform team installs."""
        if self._api.find(NAMESPACE, None, NAMESPACE_NAME) is None:
            self._api.create(NAMESPACE, {"metadata": {"name": NAMESPACE_NAME}})
        if self._api.find(GATEWAY_CLASS, None, CLASS_NAME) is None:
            spec = {"controllerName": http_routes.CONTROLLER}
            self._api.create(GATEWAY_CLASS, {"metadata": {"name": CLASS_NAME}, "spec": spec})
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
        existing = self._api.find(GATEWAY, NAMESPACE_NAME, GATEWAY_NAME)
        if existing is None:
            self._api.create(GATEWAY, gateway)
        elif existing["spec"] != gateway["spec"]:
            self._api.replace(GATEWAY, {**existing, "spec": gateway["spec"]})

    def reconcile(self) -> None:
        services = {
            (item["metadata"]["namespace"], item["metadata"]["name"]): item
            for item in self._api.list(SERVICE)
            if not is_deleted(item)
        }
        http2 = http_routes.http2_ports(services.values())
        pods = self._api.list(POD)
        listed = self._api.list(HTTP_ROUTE)
        policies = self._policies.read_policies(
            {_key_of(route) for route in listed if _parents_of(route)}
        )
        injections = self._policies.injections()
        routes: list[Route] = []
        endpoints: dict[str, Sequence[Endpoint]] = {}
        attached: list[JsonObject] = []

        def reconcile_route(route: JsonObject) -> None:
            parents = _parents_of(route)
            if is_deleted(route) or not parents:
                return
            backends = http_routes.backends_of(route, http2)
            missing = [_label(item) for item in backends if not _exists(item, services)]
            problem = None
            try:
                of_route = policies.get(_key_of(route), OPEN)
                routes.extend(http_routes.routes_of(route, http2, of_route, injections))
            except UnsupportedRoute as error:
                problem = str(error)
            for item in backends:
                service = services.get((item.namespace, item.name))
                ready = http_routes.endpoints_of(service, item.port, pods) if service else []
                endpoints[item.cluster] = ready
            attached.append(route)
            status = http_routes.status_of(route, parents, problem, missing)
            self._write_status(HTTP_ROUTE, route, status)

        reconcile_each(listed, reconcile_route)
        self._program(routes, endpoints, {key: item.access for key, item in policies.items()})
        self._report(len(attached))

    def _program(
        self,
        routes: Sequence[Route],
        endpoints: Mapping[str, Sequence[Endpoint]],
        access: Mapping[Key, object],
    ) -> None:
        if self._files is None:
            return
        self._files.update_filters(self._policies.read_gateway_access(), access)
        self._files.update(routes, endpoints)
        gateway_pod.maintain(
            self._api,
            namespace=NAMESPACE_NAME,
            gateway=GATEWAY_NAME,
            stats_port=self._files.stats_port,
        )

    def _write_status(self, kind: Kind, obj: JsonObject, status: JsonObject) -> None:
        # Deleted or changed meanwhile; the next pass writes it.
        with suppress(NotFound, Conflict):
            if not is_same_status(obj.get("status") or {}, status):
                self._api.replace_status(kind, obj | {"status": status})

    def _report(self, route_count: int) -> None:
        for gateway_class in self._api.list(GATEWAY_CLASS):
            if gateway_class["spec"].get("controllerName") == http_routes.CONTROLLER:
                accepted = http_routes.condition("Accepted", conditions.TRUE, reason="Accepted")
                before = (gateway_class.get("status") or {}).get("conditions")
                status = {
                    "conditions": conditions.merge(before, [accepted]),
                    "supportedFeatures": [{"name": name} for name in http_routes.FEATURES],
                }
                self._write_status(GATEWAY_CLASS, gateway_class, status)
        gateway = self._api.find(GATEWAY, NAMESPACE_NAME, GATEWAY_NAME)
        if gateway is not None:
            self._write_status(GATEWAY, gateway, self._gateway_status(gateway, route_count))

    def _gateway_status(self, gateway: JsonObject, route_count: int) -> JsonObject:
        generation = gateway["metadata"]["generation"]
        if self._port:
            programmed = http_routes.condition("Programmed", conditions.TRUE, reason="Programmed")
        else:
            programmed = http_routes.condition(
                "Programmed",
                conditions.FALSE,
                reason="AddressNotAssigned",
                message="the local cluster was started without --gateway-port",
            )
        accepted = http_routes.condition("Accepted", conditions.TRUE, reason="Accepted")
        desired = [{**item, "observedGeneration": generation} for item in (accepted, programmed)]
        before = gateway.get("status") or {}
        merged = conditions.merge(before.get("conditions"), desired)
        listener = {
            "name": "http",
            "attachedRoutes": route_count,
            "supportedKinds": [{"group": HTTP_ROUTE.group, "kind": HTTP_ROUTE.kind}],
            "conditions": merged,
        }
        addresses = [{"type": "IPAddress", "value": "127.0.0.1"}] if self._port else []
        return {"addresses": addresses, "conditions": merged, "listeners": [listener]}


def _key_of(route: JsonObject) -> tuple[str, str]:
    return route["metadata"]["namespace"], route["metadata"]["name"]


def _parents_of(route: JsonObject) -> list[JsonObject]:
    """Return the route's references to this gateway."""
    return [item for item in route["spec"].get("parentRefs") or () if _is_ours(item, route)]


def _is_ours(parent: JsonObject, route: JsonObject) -> bool:
    namespace = parent.get("namespace") or route["metadata"]["namespace"]
    return (namespace, parent["name"]) == (NAMESPACE_NAME, GATEWAY_NAME)


def _exists(backend: BackendService, services: dict[tuple[str, str], JsonObject]) -> bool:
    service = services.get((backend.namespace, backend.name))
    listed = (service or {"spec": {}})["spec"].get("ports") or ()
    return any(int(item["port"]) == backend.port for item in listed)


def _label(backend: BackendService) -> str:
    return f"{backend.namespace}/{backend.name}:{backend.port}"
