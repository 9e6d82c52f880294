"""Register, change and delete clusters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import ProtectedError

from fleet.clusters.domain import ca_bundle
from fleet.clusters.services import credential_ownership
from fleet.kube.gateways import credential_files
from fleet.kube.services import clients
from fleet.models import Cluster, ClusterKind, UnpricedHour
from portal.accounts import policy
from portal.accounts.local import step_up
from portal.accounts.policy import Actor
from portal.audit import trail
from portal.audit.actions import register as register_action
from portal.core import clock
from portal.core.errors import Conflict, Invalid, NotFound

REGISTERED = register_action("cluster.registered", "registered cluster")
DELETED = register_action("cluster.deleted", "deleted cluster")
CHANGED = register_action("cluster.changed", "changed the connection of cluster")
_NAME = re.compile(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?")
_ROLE = re.compile(r"arn:aws[-a-z]*:iam::\d{12}:role/[\w+=,.@/-]{1,128}")
# Without "@": the address is shown to everyone, so it must not contain a password.
_URL = re.compile(r"https?://[^\s/@]+(/[^\s@]*)?")


@dataclass(frozen=True, slots=True)
class ClusterDraft:
    """A cluster as entered. `kind` is local, kubeconfig, in-cluster or eks."""

    name: str
    kind: str
    gateway_url: str
    region: str = "us-east-1"
    kubeconfig_path: str = ""
    eks_name: str = ""
    role_arn: str = ""
    gateway_namespace: str = "slipway-gateway"
    gateway_name: str = "slipway"
    prometheus_url: str = ""
    prometheus_token_path: str = ""
    prometheus_ca_pem: str = ""
    has_prometheus_sigv4: bool = False


def register(*, actor: Actor, draft: ClusterDraft) -> int:
    """Create the cluster of this name or change its connection; repeating it changes nothing.

    The cluster itself is not contacted: that is `capabilities.probe`.
    """
    policy.require_platform_admin(actor)
    step_up.require(actor)
    _validate(draft)
    now = clock.now()
    columns = {
        "kind": draft.kind,
        "kubeconfig_path": _full_path(draft.kubeconfig_path),
        "eks_name": draft.eks_name,
        "role_arn": draft.role_arn,
        "region": draft.region,
        "gateway_url": draft.gateway_url.rstrip("/"),
        "gateway_namespace": draft.gateway_namespace,
        "gateway_name": draft.gateway_name,
        "prometheus_url": draft.prometheus_url.rstrip("/"),
        "prometheus_token_path": _full_path(draft.prometheus_token_path),
        "prometheus_ca_pem": ca_bundle.normalize(draft.prometheus_ca_pem),
        "has_prometheus_sigv4": draft.has_prometheus_sigv4,
    }
    with transaction.atomic():
        cluster, is_new = Cluster.objects.get_or_create(
            name=draft.name, defaults={**columns, "created_at": now, "next_check_at": now}
        )
        before = {name: getattr(cluster, name) for name in columns}
        if is_new or before != columns:
            Cluster.objects.filter(pk=cluster.pk).update(**columns, next_check_at=now)
            trail.record(
                actor=actor,
                action=REGISTERED if is_new else CHANGED,
                obj=cluster,
                label=draft.name,
                before={} if is_new else _audited(before),
                after=_audited(columns),
            )
    clients.forget()
    return cluster.pk


def delete(*, actor: Actor, cluster_id: int) -> None:
    """Delete a cluster that nothing uses; the cluster itself is not changed.

    Sealed ledger rows stay. Raises NotFound, and Conflict naming what uses the cluster.
    """
    policy.require_platform_admin(actor)
    try:
        with transaction.atomic():
            cluster = Cluster.objects.select_for_update().filter(pk=cluster_id).first()
            if cluster is None:
                raise NotFound(f"Cluster {cluster_id} does not exist.")
            before = _audited({**asdict(_draft(cluster))})
            _refuse_unpriced(cluster)
            trail.record(actor=actor, action=DELETED, obj=cluster, before=before)
            cluster.delete()
    except ProtectedError as error:
        kinds = Counter(str(row._meta.verbose_name) for row in error.protected_objects)
        users = ", ".join(f"{count} {kind}{'s' * (count > 1)}" for kind, count in kinds.items())
        verb = "uses" if kinds.total() == 1 else "use"
        raise Conflict(
            f"The cluster cannot be deleted: {users} {verb} it. Its history must be kept.",
            code="cluster_in_use",
        ) from error
    except IntegrityError as error:
        raise Conflict(
            "The cluster was not deleted: something started to use it at the same time.",
            code="cluster_in_use",
        ) from error
    clients.forget()


def _refuse_unpriced(cluster: Cluster) -> None:
    hours = UnpricedHour.objects.filter(node__cluster=cluster).count()
    if hours:
        raise Conflict(
            f"The cluster cannot be deleted: {hours} of its hours have no price yet. Load the "
            "prices first to complete its costs.",
            code="cluster_in_use",
        )


def get_draft(*, actor: Actor, cluster_id: int) -> ClusterDraft:
    """Return the current registration of the cluster."""
    policy.require_platform_admin(actor)
    cluster = Cluster.objects.filter(pk=cluster_id).first()
    if cluster is None:
        raise NotFound(f"Cluster {cluster_id} does not exist.")
    return _draft(cluster)


def _draft(cluster: Cluster) -> ClusterDraft:
    names = [field.name for field in fields(ClusterDraft)]
    return ClusterDraft(**{name: getattr(cluster, name) for name in names})


def _validate(draft: ClusterDraft) -> None:
    problems = {**_path_problems(draft), **_prometheus_problems(draft)}
    if not _NAME.fullmatch(draft.name):
        problems["name"] = (
            "use at most 40 lowercase letters, digits and '-', starting with a letter"
        )
    if draft.kind not in ClusterKind.values:
        problems["kind"] = f"use one of {', '.join(ClusterKind.values)}"
    if not _URL.fullmatch(draft.gateway_url):
        problems["gateway_url"] = "enter an address such as https://models.example.com"
    if draft.kind in {ClusterKind.LOCAL, ClusterKind.KUBECONFIG} and not draft.kubeconfig_path:
        problems["kubeconfig_path"] = "enter the path of a kubeconfig file that the portal can read"
    if draft.kind == ClusterKind.EKS and not draft.eks_name:
        problems["eks_name"] = "enter the name of the cluster in EKS"
    if draft.role_arn and not _ROLE.fullmatch(draft.role_arn):
        problems["role_arn"] = "enter a role such as arn:aws:iam::123456789012:role/slipway"
    if problems:
        details = "; ".join(f"{field}: {problem}" for field, problem in problems.items())
        raise Invalid(f"The cluster cannot be registered: {details}.", fields=problems)


def _full_path(name: str) -> str:
    return str(credential_files.path_of(name)) if name else ""


def _path_problems(draft: ClusterDraft) -> dict[str, str]:
    problems = {}
    for field in ("kubeconfig_path", "prometheus_token_path"):
        try:
            _full_path(getattr(draft, field))
        except credential_files.OutsideFolder as error:
            problems[field] = str(error)
    return problems or credential_ownership.problems(
        draft.name, kubeconfig=draft.kubeconfig_path, token=draft.prometheus_token_path
    )


def _audited(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns for the audit trail, with fingerprints in place of certificates."""
    certificates = ca_bundle.parse(pem) if (pem := str(columns["prometheus_ca_pem"])) else ()
    return {
        **columns,
        "prometheus_ca_pem": [certificate.fingerprint for certificate in certificates],
    }


def _prometheus_problems(draft: ClusterDraft) -> dict[str, str]:
    url = draft.prometheus_url
    if url and not _URL.fullmatch(url):
        return {"prometheus_url": "an address such as https://prometheus.example.com"}
    needs_url = (
        (bool(draft.prometheus_token_path), "the token"),
        (bool(draft.prometheus_ca_pem), "the certificates"),
        (draft.has_prometheus_sigv4, "Amazon Managed Prometheus"),
    )
    for is_set, setting in needs_url:
        if is_set and not url:
            return {"prometheus_url": f"enter an address, or remove {setting}"}
    if draft.has_prometheus_sigv4 and draft.prometheus_token_path:
        return {"prometheus_token_path": "leave it empty: requests are signed instead"}
    return _bundle_problems(draft)


def _bundle_problems(draft: ClusterDraft) -> dict[str, str]:
    pem = ca_bundle.normalize(draft.prometheus_ca_pem)
    if not pem:
        return {}
    if not draft.prometheus_url.startswith("https://"):
        return {"prometheus_ca_pem": "leave it empty, or use an https:// address"}
    try:
        certificates = ca_bundle.parse(pem)
    except ca_bundle.BadBundle as error:
        return {"prometheus_ca_pem": str(error)}
    expired = ca_bundle.describe_expired(certificates, now=clock.now())
    return {"prometheus_ca_pem": expired} if expired else {}
