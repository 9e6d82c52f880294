"""Clusters: registering one, trying its connection, finding out what works there."""

from __future__ import annotations

import re
from dataclasses import dataclass

from django.db import transaction

from fleet.domain import checks, kinds, shares
from fleet.domain.checks import Check
from fleet.domain.cluster_errors import ClusterError
from fleet.gateways.kube import KubeClient
from fleet.models import Cluster, ClusterKind
from fleet.services import clients
from portal.accounts import policy
from portal.accounts.policy import Actor
from portal.audit import trail
from portal.audit.actions import register as register_action
from portal.core import clock
from portal.core.errors import Invalid

REGISTERED = register_action("cluster.registered", "registered cluster")
CHANGED = register_action("cluster.changed", "changed the connection of cluster")
_NAME = re.compile(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?")
# Without "@": it is shown to everyone, so it must not hold a password.
_URL = re.compile(r"https?://[^\s/@]+(/[^\s@]*)?")


@dataclass(frozen=True, slots=True)
class ClusterDraft:
    """`kind` is local, kubeconfig, in-cluster or eks."""

    name: str
    kind: str
    gateway_url: str
    region: str = "us-east-1"
    kubeconfig_path: str = ""
    eks_name: str = ""
    gateway_namespace: str = "slipway-gateway"
    gateway_name: str = "slipway"


def register(*, actor: Actor, draft: ClusterDraft) -> int:
    """Create the cluster of this name or change its connection; the same again changes nothing.

    Nothing is asked of the cluster here: call `probe` for that.
    """
    policy.require_platform_admin(actor)
    _validate(draft)
    now = clock.now()
    fields = {
        "kind": draft.kind,
        "kubeconfig_path": draft.kubeconfig_path,
        "eks_name": draft.eks_name,
        "region": draft.region,
        "gateway_url": draft.gateway_url.rstrip("/"),
        "gateway_namespace": draft.gateway_namespace,
        "gateway_name": draft.gateway_name,
    }
    with transaction.atomic():
        cluster, is_new = Cluster.objects.get_or_create(
            name=draft.name, defaults={**fields, "created_at": now, "next_check_at": now}
        )
        before = {name: getattr(cluster, name) for name in fields}
        if is_new or before != fields:
            Cluster.objects.filter(pk=cluster.pk).update(**fields, next_check_at=now)
            trail.record(
                actor=actor,
                action=REGISTERED if is_new else CHANGED,
                obj=cluster,
                label=draft.name,
                before={} if is_new else before,
                after=fields,
            )
    clients.forget()
    return cluster.pk


def test_connection(*, actor: Actor, cluster_id: int) -> list[Check]:
    """From reaching it to what works there, in words. Stops at the first thing that fails."""
    policy.require_platform_admin(actor)
    try:
        client = clients.client_for(cluster_id)
        version = client.version()
        found = [Check("Answers", ok=True, detail=f"Kubernetes {version}")]
        found += _readable(client)
        return found + _capability_checks(probe(cluster_id=cluster_id))
    except ClusterError as error:
        _note(cluster_id, error)
        return [checks.explain(error)]


def probe(*, cluster_id: int) -> dict[str, object]:
    """Ask the cluster what works there and remember it. Raises ClusterError."""
    client = clients.client_for(cluster_id)
    version, groups = client.version(), client.groups()
    nodes = client.list_all(kinds.NODE).items
    offered = {
        name
        for node in nodes
        for name in (node.get("status") or {}).get("allocatable") or {}
        if shares.is_gpu(name)
    }
    found = checks.capabilities(version, groups, sorted(offered))
    found["probed_at"] = clock.now().isoformat()
    Cluster.objects.filter(pk=cluster_id).update(
        capabilities=found, is_reachable=True, last_error=""
    )
    return found


def _note(cluster_id: int, error: ClusterError) -> None:
    Cluster.objects.filter(pk=cluster_id).update(is_reachable=False, last_error=error.message)


def _readable(client: KubeClient) -> list[Check]:
    """What observing needs. A refusal is told per kind, because a role often lacks just one."""
    found = []
    for kind in (kinds.NODE, kinds.POD):
        try:
            seen = len(client.list_all(kind).items)
        except ClusterError as error:
            found.append(checks.explain(error))
        else:
            found.append(Check(f"Shows {kind.plural}", ok=True, detail=f"{seen} {kind.plural}"))
    return found


def _capability_checks(found: dict[str, object]) -> list[Check]:
    names = {
        "has_gateway_api": ("Gateway API", "Install the Gateway API CRDs and a gateway."),
        "has_kserve": ("KServe", "Install KServe, or use the triton engine."),
        "has_keda": ("KEDA", "Install KEDA to scale on queue length."),
    }
    return [
        Check(
            name,
            ok=True if found[flag] else None,
            detail="installed" if found[flag] else "not installed",
            fix="" if found[flag] else fix,
        )
        for flag, (name, fix) in names.items()
    ]


def _validate(draft: ClusterDraft) -> None:
    problems: dict[str, str] = {}
    if not _NAME.fullmatch(draft.name):
        problems["name"] = "at most 40 lower-case letters, digits and '-', beginning with a letter"
    if draft.kind not in ClusterKind.values:
        problems["kind"] = f"one of {', '.join(ClusterKind.values)}"
    if not _URL.fullmatch(draft.gateway_url):
        problems["gateway_url"] = "an address such as https://models.example.com"
    if draft.kind in {ClusterKind.LOCAL, ClusterKind.KUBECONFIG} and not draft.kubeconfig_path:
        problems["kubeconfig_path"] = "the path of a kubeconfig file that the portal can read"
    if draft.kind == ClusterKind.EKS and not draft.eks_name:
        problems["eks_name"] = "the name of the cluster in EKS"
    if problems:
        told = "; ".join(f"{field}: {words}" for field, words in problems.items())
        raise Invalid(f"The cluster cannot be registered: {told}.", fields=problems)
