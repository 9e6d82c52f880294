"""How a cluster is reached. Never contains a credential, only where to read it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Connection:
    """The connection to a cluster. `kind` is one of local, kubeconfig, in-cluster, eks."""

    name: str
    kind: str
    kubeconfig_path: str = ""
    eks_name: str = ""
    region: str = ""
    # The AWS role to assume before speaking to EKS; empty uses the portal's own.
    role_arn: str = ""
