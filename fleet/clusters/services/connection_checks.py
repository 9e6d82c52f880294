"""Try a cluster's connection step by step, and say of each step what to do when it fails."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from fleet.clusters.domain import connection_checks
from fleet.clusters.domain.capabilities import Capabilities
from fleet.clusters.domain.connection_checks import Check
from fleet.clusters.domain.rbac import PERMISSIONS, Permission
from fleet.clusters.services import capabilities
from fleet.kube.domain.errors import ClusterError
from fleet.kube.gateways.client import KubeClient
from fleet.kube.services import clients
from fleet.models import Cluster, Workload
from portal.accounts import policy
from portal.accounts.policy import Actor

_THREADS = 8
_MOST_NAMESPACES = 20


def run(*, actor: Actor, cluster_id: int) -> list[Check]:
    """The steps, and then a line for each feature: what works there and what does not."""
    passed = steps(actor=actor, cluster_id=cluster_id)
    if passed[-1].name != connection_checks.GATEWAY:
        # It stopped on the way: what is remembered of the cluster is not what was found now.
        return passed
    found = Cluster.objects.values_list("capabilities", flat=True).get(pk=cluster_id)
    return passed + connection_checks.of_features(Capabilities.from_json(found))


def steps(*, actor: Actor, cluster_id: int) -> list[Check]:
    """From the credentials to the permissions. Stops at the first that cannot be passed; after the
    last one what works there is asked anew.
    """
    policy.require_platform_admin(actor)
    passed: list[Check] = []
    try:
        client = clients.client_for(cluster_id)
        passed.append(connection_checks.credentials())
        for step in client.probe_connection():
            passed.append(connection_checks.way(step.step, step.detail, ok=step.ok))
            if step.ok is False:
                capabilities.note_failure(cluster_id, ClusterError(step.detail))
                return passed
        passed.append(Check("Answers", ok=True, detail=f"Kubernetes {client.version()}"))
        passed += _permissions(client, cluster_id)
        found = capabilities.probe(cluster_id=cluster_id)
        asked = found.feature("promql")
        if asked.is_there is not False:
            passed.append(connection_checks.prometheus(asked))
        return [*passed, connection_checks.gateway(found.feature("gateway-api"))]
    except ClusterError as error:
        capabilities.note_failure(cluster_id, error)
        return [*passed, connection_checks.explain(error)]


def _permissions(client: KubeClient, cluster_id: int) -> list[Check]:
    """One line when nothing is missing, one for each permission that is."""
    asked = [(one, verb) for one in PERMISSIONS for verb in one.verbs]
    with ThreadPoolExecutor(_THREADS) as pool:
        answers = list(pool.map(lambda pair: client.may(pair[0].attributes(pair[1])), asked))
    denied = [pair for pair, allowed in zip(asked, answers, strict=True) if not allowed]
    signed_in = Check("Signed in", ok=True, detail="the cluster knows the portal's account")
    namespaces = _namespaces(cluster_id)
    missing = _missing(client, denied, namespaces)
    lines = [
        connection_checks.missing_permission(str(one), verbs, one.why, where)
        for one, verbs, where in missing
    ]
    return [signed_in, *(lines or [connection_checks.all_permitted(len(asked))])]


def _namespaces(cluster_id: int) -> list[str]:
    """Those where something runs: a role may be granted there and nowhere else."""
    rows = Workload.objects.filter(cluster_id=cluster_id, retired_at=None)
    found = rows.order_by("namespace").values_list("namespace", flat=True).distinct()
    return list(found[:_MOST_NAMESPACES])


def _missing(
    client: KubeClient, denied: Iterable[tuple[Permission, str]], namespaces: Sequence[str]
) -> list[tuple[Permission, list[str], str]]:
    """What is denied everywhere may still be granted in each team's namespace."""
    found: dict[tuple[Permission, str], list[str]] = {}
    for one, verb in denied:
        if not one.is_per_team or not namespaces:
            found.setdefault((one, ""), []).append(verb)
            continue
        for namespace in namespaces:
            if not client.may(one.attributes(verb, namespace)):
                found.setdefault((one, namespace), []).append(verb)
    return [(one, verbs, where) for (one, where), verbs in found.items()]
