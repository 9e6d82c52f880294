"""EKS's managed node groups. Raises the errors of fleet.kube.domain.errors, as the cluster's own API does."""

from __future__ import annotations

from typing import Any, Final

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from fleet.clusters.domain import node_groups
from fleet.clusters.domain.node_groups import GroupSize, NodeGroup
from fleet.kube.domain.errors import (
    ClusterError,
    ObjectConflict,
    ObjectInvalid,
    ObjectNotFound,
    Refused,
    Unreachable,
)
from fleet.kube.gateways.eks import EksUnavailable, session_for
from portal.core import network_failures

_CONFIG: Final = Config(connect_timeout=3, read_timeout=10, retries={"max_attempts": 2})
_MOST_GROUPS: Final = 50
_ERRORS: Final[dict[str, type[ClusterError]]] = {
    "ResourceNotFoundException": ObjectNotFound,
    "ResourceInUseException": ObjectConflict,
    "InvalidParameterException": ObjectInvalid,
    "InvalidRequestException": ObjectInvalid,
    "AccessDeniedException": Refused,
    "AccessDenied": Refused,
}


class NodeGroups:
    """The node groups of one EKS cluster."""

    def __init__(self, name: str, region: str, role_arn: str) -> None:
        self._name = name
        try:
            session = session_for(region, role_arn)
            self._client: Any = session.client("eks", region_name=region, config=_CONFIG)
        except (EksUnavailable, BotoCoreError) as error:
            raise Unreachable(network_failures.describe(error)) from error

    def list_names(self) -> list[str]:
        """List the first fifty node groups by name."""
        try:
            pages = self._client.get_paginator("list_nodegroups").paginate(
                clusterName=self._name, PaginationConfig={"MaxItems": _MOST_GROUPS}
            )
            return sorted(str(name) for page in pages for name in page["nodegroups"])
        except (ClientError, BotoCoreError) as error:
            raise _error(f"eks:ListNodegroups of {self._name}", error) from error

    def describe(self, group: str) -> NodeGroup:
        try:
            answer = self._client.describe_nodegroup(clusterName=self._name, nodegroupName=group)
            return node_groups.parse(answer["nodegroup"])
        except (ClientError, BotoCoreError) as error:
            raise _error(f"eks:DescribeNodegroup {group}", error) from error

    def scale(self, group: str, size: GroupSize, *, token: str) -> None:
        """Scale a node group. Repeating it with the same token changes nothing more."""
        try:
            self._client.update_nodegroup_config(
                clusterName=self._name,
                nodegroupName=group,
                scalingConfig={
                    "minSize": size.min_size,
                    "maxSize": size.max_size,
                    "desiredSize": size.desired_size,
                },
                clientRequestToken=token,
            )
        except (ClientError, BotoCoreError) as error:
            raise _error(f"eks:UpdateNodegroupConfig {group}", error) from error


def _error(call: str, error: ClientError | BotoCoreError) -> ClusterError:
    code = error.response["Error"]["Code"] if isinstance(error, ClientError) else ""
    return _ERRORS.get(code, Unreachable)(f"{call} failed: {network_failures.describe(error)}")
