"""From a connection to the Kubernetes client's configuration: address, trust, credentials."""

from __future__ import annotations

from typing import Any

import yaml
from kubernetes import config
from kubernetes.client import Configuration

from fleet.domain.cluster_errors import Refused, Unreachable
from fleet.domain.connections import Connection
from fleet.gateways import eks

_POOL_SIZE = 32


def configuration_of(connection: Connection) -> Any:
    """Raises Refused with what to mend when the credentials cannot be read."""
    if connection.kind == "eks":
        loaded = _eks(connection)
    else:
        loaded = Configuration()
        try:
            if connection.kind == "in-cluster":
                config.load_incluster_config(client_configuration=loaded)
            else:
                config.load_kube_config(
                    config_file=connection.kubeconfig_path,
                    client_configuration=loaded,
                    persist_config=False,
                )
        except (config.ConfigException, OSError, yaml.YAMLError) as error:
            where = connection.kubeconfig_path or "the pod's service account"
            raise Refused(
                f"Cluster {connection.name}: {where} cannot be used as credentials: {error}"
            ) from error
    loaded.connection_pool_maxsize = _POOL_SIZE
    return loaded


def _eks(connection: Connection) -> Any:
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
            configuration.api_key["authorization"] = f"Bearer {tokens.get()}"
        except eks.EksUnavailable as error:
            raise Refused(f"Cluster {connection.name}: {error}") from error

    loaded.refresh_api_key_hook = refresh
    loaded.api_key["authorization"] = ""
    return loaded
