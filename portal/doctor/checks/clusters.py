"""Each registered cluster, by the steps of its connection test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from fleet.clusters.domain import kserve_releases
from fleet.clusters.domain.capabilities import Capabilities
from fleet.clusters.domain.capability_descriptions import FEATURE_DESCRIPTIONS
from fleet.clusters.domain.connection_checks import Check
from fleet.clusters.selectors import clusters
from fleet.clusters.services import connection_checks
from fleet.kube.services import installation
from portal.accounts.policy import SYSTEM
from portal.doctor.lines import Line, Status, note, ok, report_failed
from portal.doctor.registry import check

_AREA: Final = "clusters"
_STATUS: Final = {True: Status.OK, False: Status.FAILED, None: Status.NOTE}


@check(_AREA, "Installation", fix="Fix the database first.")
def identity() -> Iterator[Line]:
    current = installation.read()
    if current.suspended_reason:
        yield report_failed("Installation", current.suspended_reason, "Run `manage.py adopt`.")
    else:
        yield ok("Installation", f"{current.identity} may write to its clusters")
    for cluster in clusters.list_clusters():
        for other in cluster.other_installations:
            detail = (
                f"{other.identity} has {other.objects} objects in {', '.join(other.namespaces)}"
            )
            fix = "Nothing, if it is meant to be there: this portal leaves it alone."
            yield note(f"Another installation on {cluster.name}", detail, fix)


@check(_AREA, "Clusters", fix="Fix the database first.")
def each_cluster() -> Iterator[Line]:
    registered = clusters.list_clusters()
    if not registered:
        yield note("Clusters", "none is registered", "Register one under Admin > Clusters.")
    for cluster in registered:
        yield from _connection(cluster.name, cluster.id)


def _connection(name: str, cluster_id: int) -> Iterator[Line]:
    checks = connection_checks.steps(actor=SYSTEM, cluster_id=cluster_id)
    passed = [row.name.lower() for row in checks if row.ok]
    if passed:
        yield ok(f"Cluster {name}", ", ".join(dict.fromkeys(passed)))
    yield from (_line(name, row) for row in checks if not row.ok)
    if checks and checks[-1].ok is not False:
        yield from _capabilities(name, clusters.get_cluster(cluster_id).capabilities)


def _capabilities(name: str, capabilities: Capabilities) -> Iterator[Line]:
    """Features that are missing are the cluster's own choice: forms do not offer what needs them."""
    installed, missing = _split(capabilities)
    yield ok(f"Capabilities of {name}", ", ".join(installed) or "none")
    if missing:
        detail = f"not installed or not known: {', '.join(missing)}"
        fix = "Nothing, unless you want what they offer: Admin > Clusters says what each is for."
        yield note(f"Capabilities of {name}", detail, fix)
    kserve = capabilities.feature("kserve").version
    problem, untested = (
        kserve_releases.problem_with("kserve", kserve),
        kserve_releases.describe_untested(kserve),
    )
    if problem:
        yield report_failed(f"KServe of {name}", problem, "Upgrade KServe on that cluster.")
    if untested:
        fix = "Nothing, while it works: docs/kserve-releases.md says what is known of it."
        yield note(f"KServe of {name}", untested, fix)


def _split(capabilities: Capabilities) -> tuple[Sequence[str], Sequence[str]]:
    installed, missing = [], []
    for key, description in FEATURE_DESCRIPTIONS.items():
        feature = capabilities.feature(key)
        if feature.is_there:
            installed.append(f"{description.title} {feature.version}".strip())
        else:
            missing.append(description.title)
    return installed, missing


def _line(name: str, row: Check) -> Line:
    return Line(f"{row.name} of {name}", _STATUS[row.ok], row.detail, row.fix)
