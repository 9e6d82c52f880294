"""Reads policies for one Gateway and its routes, Envoy Gateway's and Istio's, and reports whether they hold."""

from collections.abc import Callable, Mapping, Set
from typing import TypeVar

from slipway_localcluster.client.cluster_api import ClusterApi
from slipway_localcluster.controllers import (
    api_keys,
    credential_injection,
    http_routes,
    istio_policies,
    provider_tokens,
    rate_limits,
    route_policies,
    scripts,
)
from slipway_localcluster.controllers.api_keys import ApiKeys
from slipway_localcluster.controllers.caller_counts import ClientMemory
from slipway_localcluster.controllers.credential_injection import Injection
from slipway_localcluster.controllers.envoy_config import Policies
from slipway_localcluster.controllers.istio_policies import GatewayAccess
from slipway_localcluster.controllers.provider_tokens import ProviderTokens
from slipway_localcluster.controllers.rate_limits import RateLimits
from slipway_localcluster.controllers.route_policies import Key
from slipway_localcluster.controllers.scripts import Script
from slipway_localcluster.errors import JsonObject, NotFound
from slipway_localcluster.kinds import (
    AUTHORIZATION_POLICY,
    BACKEND_TRAFFIC_POLICY,
    ENVOY_EXTENSION_POLICY,
    HTTP_ROUTE_FILTER,
    REQUEST_AUTHENTICATION,
    SECRET,
    SECURITY_POLICY,
    Kind,
)

Access = ApiKeys | ProviderTokens
T = TypeVar("T", Access, RateLimits, Script)


class GatewayPolicies:
    def __init__(
        self,
        api: ClusterApi,
        gateway: Mapping[str, str],
        write_status: Callable[[Kind, JsonObject, JsonObject], None],
    ) -> None:
        self._api = api
        self._gateway = gateway
        self._write_status = write_status
        self._memory = ClientMemory()

    def read_policies(self, routes: Set[Key]) -> dict[Key, Policies]:
        """Return the policies of routes by namespace and name, limited to those that have any."""
        secrets = self._secrets()
        access: dict[Key, Access] = self._attach(
            SECURITY_POLICY, routes, lambda policy: _access_of(policy, secrets)
        )
        limits = self._attach(BACKEND_TRAFFIC_POLICY, routes, rate_limits.read_policy)
        scripted = self._attach(ENVOY_EXTENSION_POLICY, routes, scripts.read_policy)
        # Who calls is counted where a script leads, under the name that it leaves.
        counted = self._memory.count_clients({key: access[key] for key in access.keys() - scripted})
        return {
            key: Policies(access.get(key), limits.get(key), counted.get(key), scripted.get(key))
            for key in {*access, *limits, *scripted}
        }

    def injections(self) -> dict[Key, Injection]:
        """Read the injections, by namespace and name of their HTTPRouteFilter."""
        filters = self._list(HTTP_ROUTE_FILTER)
        return credential_injection.read(filters, self._secrets()) if filters else {}

    def _secrets(self) -> dict[Key, JsonObject]:
        return {
            (item["metadata"]["namespace"], item["metadata"]["name"]): item
            for item in self._list(SECRET)
        }

    def read_gateway_access(self) -> GatewayAccess:
        """Return Istio's policies, which name the Gateway and have no status that says whether they hold."""
        return istio_policies.read(
            self._list(REQUEST_AUTHENTICATION), self._list(AUTHORIZATION_POLICY), self._gateway
        )

    def _attach(
        self, kind: Kind, routes: Set[Key], read: Callable[[JsonObject], T]
    ) -> dict[Key, T]:
        by_route: dict[Key, T] = {}
        for attachment in route_policies.attach(self._list(kind), routes):
            parsed = read(attachment.policy)
            by_route |= dict.fromkeys(attachment.routes, parsed)
            status = route_policies.status_of(
                attachment, self._gateway, http_routes.CONTROLLER, parsed.problem
            )
            self._write_status(kind, attachment.policy, status)
        return by_route

    def _list(self, kind: Kind) -> list[JsonObject]:
        """A cluster without Envoy Gateway's kinds has no policies, and its Secrets are not read."""
        try:
            return self._api.list(kind)
        except NotFound:
            return []


def _access_of(policy: JsonObject, secrets: Mapping[Key, JsonObject]) -> Access:
    if policy["spec"].get("jwt"):
        return provider_tokens.read_policy(policy)
    return api_keys.read_policy(policy, secrets)
