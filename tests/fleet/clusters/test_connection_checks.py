"""A connection test says of each step whether it was passed, and what to do when it was not."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from fleet.clusters.services import connection_checks
from fleet.kube.domain.errors import NotAllowed, Refused, Unreachable
from fleet.kube.gateways.connection_probe import ProbeStep
from fleet.models import Cluster
from portal.accounts.policy import SYSTEM
from portal.core.errors import Forbidden
from tests.accounts import make_team, make_user
from tests.fleet.fakes import FakeKube

pytestmark = pytest.mark.django_db


def steps(cluster: Cluster) -> list[tuple[str, bool | None]]:
    checks = connection_checks.run(actor=SYSTEM, cluster_id=cluster.pk)
    return [(check.name, check.ok) for check in checks]


def test_a_good_connection_passes_every_step(kube: FakeKube, cluster: Cluster) -> None:
    assert steps(cluster)[:7] == [
        ("Credentials", True),
        ("Port answers", True),
        ("Answers", True),
        ("Signed in", True),
        ("Permissions", True),
        ("Gateway", None),
        ("Kubernetes", True),
    ]
    assert Cluster.objects.get().is_reachable is True


def test_it_stops_at_the_step_that_fails_and_says_what_to_do(
    kube: FakeKube, cluster: Cluster
) -> None:
    kube.way = [
        ProbeStep("Address resolves", ok=True, detail="api.example is 10.0.0.1"),
        ProbeStep("Port answers", ok=False, detail="api.example port 443 refuses"),
    ]

    checks = connection_checks.run(actor=SYSTEM, cluster_id=cluster.pk)

    assert [(check.name, check.ok) for check in checks] == [
        ("Credentials", True),
        ("Address resolves", True),
        ("Port answers", False),
    ]
    assert "security group" in checks[-1].fix
    assert Cluster.objects.get().is_reachable is False
    assert Cluster.objects.get().last_error == "api.example port 443 refuses"


@pytest.mark.parametrize(
    ("error", "step"),
    [
        (Unreachable("gone"), "Answers"),
        (Refused("Unauthorized"), "Signed in"),
        (NotAllowed("nodes is forbidden"), "Permissions"),
    ],
)
def test_an_error_is_reported_at_its_step(
    kube: FakeKube, cluster: Cluster, error: Exception, step: str
) -> None:
    kube.broken = error  # type: ignore[assignment]  # a ClusterError of each kind

    assert steps(cluster)[-1] == (step, False)


def test_each_missing_permission_is_a_line_of_its_own(kube: FakeKube, cluster: Cluster) -> None:
    def allows(attributes: Mapping[str, str]) -> bool:
        return (attributes["resource"], attributes["verb"]) != ("nodes", "watch")

    kube.allows = allows

    checks = connection_checks.run(actor=SYSTEM, cluster_id=cluster.pk)

    lines = [(check.ok, check.detail) for check in checks if check.name == "Permissions"]
    assert lines == [(False, "missing: watch nodes. Needed for reading GPUs and their cost")]


def test_permissions_of_a_team_may_be_granted_in_its_namespace_alone(
    kube: FakeKube, cluster: Cluster, detector: int
) -> None:
    def only_there(attributes: Mapping[str, str]) -> bool:
        is_about_team = attributes["resource"] == "services"
        return not is_about_team or attributes.get("namespace") == "vision"

    kube.allows = only_there

    assert ("Permissions", True) in steps(cluster)
    kube.allows = lambda attributes: attributes["resource"] != "services"
    checks = connection_checks.run(actor=SYSTEM, cluster_id=cluster.pk)
    assert [check.detail for check in checks if check.ok is False] == [
        "missing: get, list, create, patch, delete services in namespace vision. "
        "Needed for serving a revision"
    ]


def test_before_the_first_workload_the_namespaces_of_teams_count(
    kube: FakeKube, cluster: Cluster
) -> None:
    """Of two teams one uses the cluster, with all permissions or with some."""
    make_team(slug="vision")
    make_team(slug="speech")

    def only_there(attributes: Mapping[str, str]) -> bool:
        is_about_team = attributes["resource"] == "services"
        return not is_about_team or attributes.get("namespace") == "vision"

    kube.allows = only_there
    assert ("Permissions", True) in steps(cluster)

    kube.allows = lambda attributes: (
        only_there(attributes)
        and (attributes["resource"], attributes["verb"]) != ("services", "patch")
    )
    checks = connection_checks.run(actor=SYSTEM, cluster_id=cluster.pk)
    assert [check.detail for check in checks if check.ok is False] == [
        "missing: patch services in namespace vision. Needed for serving a revision"
    ]


def test_where_no_team_has_a_permission_it_is_missing_everywhere(
    kube: FakeKube, cluster: Cluster
) -> None:
    make_team(slug="vision")
    kube.allows = lambda attributes: attributes["resource"] != "services"

    checks = connection_checks.run(actor=SYSTEM, cluster_id=cluster.pk)

    assert [check.detail for check in checks if check.ok is False] == [
        "missing: get, list, create, patch, delete services. Needed for serving a revision"
    ]


def test_only_platform_admins_may_try(kube: FakeKube, cluster: Cluster) -> None:
    with pytest.raises(Forbidden):
        connection_checks.run(actor=make_user(), cluster_id=cluster.pk)

    assert Cluster.objects.get().is_reachable is None
