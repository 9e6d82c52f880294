"""A credential file belongs to one cluster: its token is sent to no address but that cluster's.

Whoever registers a cluster chooses the address, so naming another cluster's token would send it there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from fleet.kube.gateways import credential_files
from fleet.models import Cluster

_FIELD: Final = "prometheus_token_path"


def problems(name: str, *, kubeconfig: str, token: str) -> dict[str, str]:
    """Map fields to why the credential files of the cluster are refused. Two registrations may share a kubeconfig: it names
    its own address.
    """
    found: dict[str, str] = {}
    if _is_same(token, kubeconfig):
        found |= {_FIELD: "use a file of its own, not the kubeconfig"}
    for other in Cluster.objects.exclude(name=name):
        theirs = (other.kubeconfig_path, other.prometheus_token_path)
        if any(_is_same(token, named) for named in theirs):
            found[_FIELD] = _belongs_to(other)
        if _is_same(kubeconfig, other.prometheus_token_path):
            found["kubeconfig_path"] = _belongs_to(other)
    return found


def _belongs_to(cluster: Cluster) -> str:
    return f"this file belongs to cluster {cluster.name}; use one of its own"


def _is_same(one: str, other: str) -> bool:
    """Whether both names lead to one file, by links of either kind."""
    if not one or not other:
        return False
    try:
        paths = [credential_files.path_of(name) for name in (one, other)]
    except credential_files.OutsideFolder:
        # Registered when the folder was another: no such file is read any more.
        return False
    return _resolve(paths[0]) == _resolve(paths[1]) or _is_same_inode(*paths)


def _resolve(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return path


def _is_same_inode(one: Path, other: Path) -> bool:
    """Return whether both are one file. False while one of them does not exist."""
    try:
        return one.samefile(other)
    except OSError:
        return False
