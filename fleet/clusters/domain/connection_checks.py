"""The lines of a connection test: what was found, and how to mend it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fleet.clusters.domain.capabilities import Capabilities, Feature, sentence
from fleet.clusters.domain.capability_descriptions import FEATURE_DESCRIPTIONS
from fleet.kube.domain.errors import ClusterError, NotAllowed, Refused, Throttled


@dataclass(frozen=True, slots=True)
class Check:
    """`ok` None is not known; `fix` says what to do when it is not ok."""

    name: str
    ok: bool | None
    detail: str
    fix: str = ""


def explain(error: ClusterError) -> Check:
    """What stands in the way of reaching a cluster, and how to mend it."""
    if isinstance(error, NotAllowed):
        return Check(PERMISSIONS, ok=False, detail=error.message, fix=GRANT)
    if isinstance(error, Refused):
        return Check(
            "Signed in",
            ok=False,
            detail=error.message,
            fix="Renew the credentials, or grant the portal's account the permissions that "
            "`manage.py cluster_rbac` prints.",
        )
    if isinstance(error, Throttled):
        return Check(
            "Answers",
            ok=None,
            detail=error.message,
            fix="The cluster is busy. Try again in a minute.",
        )
    return Check(
        "Answers",
        ok=False,
        detail=error.message,
        fix="Check the address and the certificate authority in the kubeconfig, and the network "
        "between the portal and the cluster.",
    )


PERMISSIONS = "Permissions"
# The last step.
GATEWAY = "Gateway"
_WAY_FIXES = {
    "Address resolves": "Check the address in the kubeconfig and the portal's DNS. "
    "A private EKS endpoint resolves only inside its VPC.",
    "Port answers": "Allow connections from the portal to that port: check the security group, firewall, "
    "VPN and the networks that the API endpoint allows.",
    "TLS": "In the kubeconfig, use the cluster's own certificate authority and the host name in its "
    "certificate.",
}


def credentials() -> Check:
    return Check("Credentials", ok=True, detail="found")


def way(step: str, detail: str, *, ok: bool | None) -> Check:
    return Check(step, ok=ok, detail=detail, fix="" if ok else _WAY_FIXES[step])


def all_permitted(count: int) -> Check:
    return Check(PERMISSIONS, ok=True, detail=f"all {count} granted")


def missing_permission(what: str, verbs: Sequence[str], why: str, namespace: str) -> Check:
    where = f" in namespace {namespace}" if namespace else ""
    return Check(
        PERMISSIONS,
        ok=False,
        detail=f"missing: {', '.join(verbs)} {what}{where}. Needed for {why}",
        fix="Apply the output of `manage.py cluster_rbac` for the account that the portal uses.",
    )


def gateway(found: Feature) -> Check:
    words = FEATURE_DESCRIPTIONS["gateway-api"]
    if found.is_there:
        return Check(GATEWAY, ok=True, detail=found.why)
    fix = GRANT if found.is_there is None else words.install
    return Check(GATEWAY, ok=None, detail=sentence("gateway-api", found), fix=fix)


def prometheus(found: Feature) -> Check:
    words = FEATURE_DESCRIPTIONS["promql"]
    if found.is_there:
        return Check(
            words.title, ok=True, detail=f"answers queries, version {found.version or 'not known'}"
        )
    return Check(words.title, ok=None, detail=sentence("promql", found), fix=words.fix_unknown)


def of_features(found: Capabilities) -> list[Check]:
    """One line per feature. Not installed is no failure: the form then leaves out what needs it."""
    lines = []
    for name, words in FEATURE_DESCRIPTIONS.items():
        feature = found.feature(name)
        if feature.is_there:
            detail = " ".join(part for part in (feature.version, feature.why) if part)
            lines.append(Check(words.title, ok=True, detail=detail or "installed"))
        else:
            detail = sentence(name, feature)
            is_unknown = feature.is_there is None
            fix = (words.fix_unknown or GRANT) if is_unknown else words.install
            lines.append(Check(words.title, ok=None, detail=detail, fix=fix))
    return lines


GRANT = "Apply the output of `manage.py cluster_rbac`, then test again."
