"""The Kubernetes client's configuration of a connection: address, trust, credentials."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import yaml
from kubernetes import config
from kubernetes.client import Configuration

from fleet.kube.domain.connection import Connection
from fleet.kube.domain.errors import Refused, Unreachable
from fleet.kube.gateways import credential_files, eks
from portal.core import network_failures

_POOL_SIZE = 32
_BEARER = "Bearer "
_REFRESH_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Access:
    """The access to an API server. `renew` takes the authorization that a server refused, and returns whether to
    retry with a new one.
    """

    configuration: Any
    renew: Callable[[str], bool]


def read_access(connection: Connection) -> Access:
    """Raises Refused with the fix when the credentials cannot be read."""
    if connection.kind == "eks":
        access = _eks(connection)
    else:
        # Tokens of a pod and of a command are read anew by the client library, and a kubeconfig
        # that was replaced makes a new client.
        access = Access(_from_file(connection), lambda _refused: False)
    access.configuration.connection_pool_maxsize = _POOL_SIZE
    return access


def _from_file(connection: Connection) -> Any:
    loaded = Configuration()
    try:
        if connection.kind == "in-cluster":
            config.load_incluster_config(client_configuration=loaded)
        else:
            config.load_kube_config(
                config_file=str(credential_files.path_of(connection.kubeconfig_path)),
                client_configuration=loaded,
                persist_config=False,
            )
    except (config.ConfigException, OSError, yaml.YAMLError) as error:
        where = connection.kubeconfig_path or "the pod's service account"
        raise Refused(
            f"Cluster {connection.name}: could not use {where} as credentials: {network_failures.describe(error)}"
        ) from error
    if loaded.refresh_api_key_hook is not None:
        loaded.refresh_api_key_hook = _at_most_once_a_second(loaded.refresh_api_key_hook)
    return loaded


def _at_most_once_a_second(hook: Callable[[Any], None]) -> Callable[[Any], None]:
    """The client library's hook rebuilds the whole configuration before each request, with the
    proxies of the environment: a fifth of the CPU time of an apply. Tokens are renewed minutes
    before they expire, so a second's delay is safe.
    """
    refreshed_at = -_REFRESH_SECONDS

    def refresh(configuration: Any) -> None:
        nonlocal refreshed_at
        if time.monotonic() - refreshed_at >= _REFRESH_SECONDS:
            hook(configuration)
            # The library's hook installs itself again.
            configuration.refresh_api_key_hook = refresh
            refreshed_at = time.monotonic()

    return refresh


def _eks(connection: Connection) -> Access:
    try:
        cluster = eks.describe(connection.eks_name, connection.region, connection.role_arn)
    except eks.EksUnavailable as error:
        raise Unreachable(f"Cluster {connection.name}: {error}") from error
    tokens = eks.TokenCache(connection.eks_name, connection.region, role_arn=connection.role_arn)
    loaded = Configuration()
    loaded.host = cluster.endpoint
    loaded.ssl_ca_cert = cluster.ca_file

    def refresh(configuration: Any) -> None:
        """Runs before each request."""
        try:
            configuration.api_key["authorization"] = _BEARER + tokens.get()
        except eks.EksUnavailable as error:
            raise Refused(f"Cluster {connection.name}: {error}") from error

    loaded.refresh_api_key_hook = refresh
    loaded.api_key["authorization"] = ""
    return Access(loaded, lambda refused: tokens.forget(refused.removeprefix(_BEARER)))
