"""The lines of a connection test: each step's result, and how to fix it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fleet.clusters.domain.capabilities import Capabilities, Feature, describe_feature
from fleet.clusters.domain.capability_descriptions import FEATURE_DESCRIPTIONS
from fleet.kube.domain.errors import ClusterError, NotAllowed, Refused, Throttled


@dataclass(frozen=True, slots=True)
class Check:
    """A check of a connection. `ok` is None if it is unknown; `fix` says what to do if it is not ok."""

    name: str
    ok: bool | None
    detail: str
    fix: str = ""


def explain(error: ClusterError) -> Check:
    """Turn the error that ended the test into a line with its fix."""
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
# The name of the last step; `connection_checks.run` detects an early end by it.
GATEWAY = "Gateway"
_STEP_FIXES = {
    "Address resolves": "Check the address in the kubeconfig and the portal's DNS. "
    "A private EKS endpoint resolves only inside its VPC.",
    "Port answers": "Allow connections from the portal to that port: check the security group, firewall, "
    "VPN and the networks that the API endpoint allows.",
    "TLS": "In the kubeconfig, use the cluster's own certificate authority and the host name in its "
    "certificate.",
}


def credentials() -> Check:
    return Check("Credentials", ok=True, detail="found")


def connection_step(step: str, detail: str, *, ok: bool | None) -> Check:
    return Check(step, ok=ok, detail=detail, fix="" if ok else _STEP_FIXES[step])


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


def gateway(feature: Feature) -> Check:
    description = FEATURE_DESCRIPTIONS["gateway-api"]
    if feature.is_there:
        return Check(GATEWAY, ok=True, detail=feature.why)
    fix = GRANT if feature.is_there is None else description.install
    return Check(GATEWAY, ok=None, detail=describe_feature("gateway-api", feature), fix=fix)


def prometheus(feature: Feature) -> Check:
    description = FEATURE_DESCRIPTIONS["promql"]
    if feature.is_there:
        return Check(
            description.title,
            ok=True,
            detail=f"answers queries, version {feature.version or 'not known'}",
        )
    return Check(
        description.title,
        ok=None,
        detail=describe_feature("promql", feature),
        fix=description.fix_unknown,
    )


def feature_lines(capabilities: Capabilities) -> list[Check]:
    """Return one line per feature. A missing feature is no failure: forms do not offer what depends on it."""
    lines = []
    for name, description in FEATURE_DESCRIPTIONS.items():
        feature = capabilities.feature(name)
        if feature.is_there:
            detail = " ".join(part for part in (feature.version, feature.why) if part)
            lines.append(Check(description.title, ok=True, detail=detail or "installed"))
        else:
            detail = describe_feature(name, feature)
            is_unknown = feature.is_there is None
            fix = (description.fix_unknown or GRANT) if is_unknown else description.install
            lines.append(Check(description.title, ok=None, detail=detail, fix=fix))
    return lines


GRANT = "Apply the output of `manage.py cluster_rbac`, then test again."
