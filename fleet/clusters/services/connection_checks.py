"""Test a cluster's connection step by step, with a fix for each step that fails."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from fleet.clusters.domain import connection_checks
from fleet.clusters.domain.capabilities import Capabilities
from fleet.clusters.domain.connection_checks import Check
from fleet.clusters.domain.permission import Permission
from fleet.clusters.domain.rbac import PERMISSIONS
from fleet.clusters.services import capabilities
from fleet.kube.domain.errors import ClusterError
from fleet.kube.gateways.kube_client import KubeClient
from fleet.kube.services import clients
from fleet.models import Cluster, Workload
from portal.accounts import policy
from portal.accounts.models import Team
from portal.accounts.policy import Actor

_THREADS = 8
_MAX_NAMESPACES = 20
_MAX_TEAMS = 50


def run(*, actor: Actor, cluster_id: int) -> list[Check]:
    """Run the steps, and return their lines followed by a line for each feature."""
    passed = steps(actor=actor, cluster_id=cluster_id)
    if passed[-1].name != connection_checks.GATEWAY:
        # The test ended early, so the stored capabilities are not those of now.
        return passed
    stored = Cluster.objects.values_list("capabilities", flat=True).get(pk=cluster_id)
    return passed + connection_checks.feature_lines(Capabilities.from_json(stored))


def steps(*, actor: Actor, cluster_id: int) -> list[Check]:
    """Check from the credentials to the permissions, up to the first step that fails. When all pass,
    probe the capabilities again.
    """
    policy.require_platform_admin(actor)
    passed: list[Check] = []
    try:
        client = clients.client_for(cluster_id)
        passed.append(connection_checks.credentials())
        for step in client.probe_connection():
            passed.append(connection_checks.connection_step(step.step, step.detail, ok=step.ok))
            if step.ok is False:
                capabilities.note_failure(cluster_id, ClusterError(step.detail))
                return passed
        passed.append(Check("Answers", ok=True, detail=f"Kubernetes {client.version()}"))
        passed += _permissions(client, cluster_id)
        probed = capabilities.probe(cluster_id=cluster_id)
        promql = probed.feature("promql")
        if promql.is_there is not False:
            passed.append(connection_checks.prometheus(promql))
        return [*passed, connection_checks.gateway(probed.feature("gateway-api"))]
    except ClusterError as error:
        capabilities.note_failure(cluster_id, error)
        return [*passed, connection_checks.explain(error)]


def _permissions(client: KubeClient, cluster_id: int) -> list[Check]:
    """Return one line if all permissions are granted, else one for each missing permission."""
    requested = [(permission, verb) for permission in PERMISSIONS for verb in permission.verbs]
    with ThreadPoolExecutor(_THREADS) as pool:
        answers = list(pool.map(lambda pair: client.may(pair[0].attributes(pair[1])), requested))
    denied = [pair for pair, allowed in zip(requested, answers, strict=True) if not allowed]
    signed_in = Check("Signed in", ok=True, detail="the cluster knows the portal's account")
    namespaces = _used_namespaces(cluster_id) or _granted_namespaces(client, denied)
    missing = _missing(client, denied, namespaces)
    lines = [
        connection_checks.missing_permission(str(permission), verbs, permission.why, where)
        for permission, verbs, where in missing
    ]
    return [signed_in, *(lines or [connection_checks.all_permitted(len(requested))])]


def _used_namespaces(cluster_id: int) -> list[str]:
    """Return the namespaces with workloads: a Role may grant the permissions in these only."""
    rows = Workload.objects.filter(cluster_id=cluster_id, retired_at=None)
    names = rows.order_by("namespace").values_list("namespace", flat=True).distinct()
    return list(names[:_MAX_NAMESPACES])


def _granted_namespaces(client: KubeClient, denied: Iterable[tuple[Permission, str]]) -> list[str]:
    """Return the namespaces of teams where a permission is granted that is not granted cluster-wide, before the
    first workload. A team that does not use the cluster has none.
    """
    per_team = next((pair for pair in denied if pair[0].is_per_team), None)
    if per_team is None:
        return []
    permission, verb = per_team
    teams = Team.objects.order_by("-created_at").values_list("slug", flat=True)[:_MAX_TEAMS]
    return [slug for slug in teams if client.may(permission.attributes(verb, slug))]


def _missing(
    client: KubeClient, denied: Iterable[tuple[Permission, str]], namespaces: Sequence[str]
) -> list[tuple[Permission, list[str], str]]:
    """Return the permissions that are neither granted cluster-wide nor in each team's namespace."""
    missing: dict[tuple[Permission, str], list[str]] = {}
    for permission, verb in denied:
        if not permission.is_per_team or not namespaces:
            missing.setdefault((permission, ""), []).append(verb)
            continue
        for namespace in namespaces:
            if not client.may(permission.attributes(verb, namespace)):
                missing.setdefault((permission, namespace), []).append(verb)
    return [(permission, verbs, where) for (permission, where), verbs in missing.items()]
