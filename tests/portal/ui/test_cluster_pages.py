"""What a platform admin sees of clusters, and how a team's delivery is chosen."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from deployments.models import GitDelivery
from fleet.clusters.domain.capabilities import Capabilities, Feature, GpuOffer
from fleet.models import Cluster, Node, UnpricedHour, Workload
from portal.accounts.models import User
from portal.audit.models import AuditEvent
from portal.core import clock
from tests.accounts import make_membership, make_team, make_user
from tests.page import page

pytestmark = pytest.mark.django_db
ADDRESSES = ("/admin/clusters", "/admin/clusters/new", "/admin/clusters/{pk}")


def signed_in(**values: Any) -> Client:
    client = Client()
    client.force_login(make_user(**values))
    return client


@pytest.fixture
def admin() -> Client:
    return signed_in(username="root", is_platform_admin=True)


@pytest.fixture
def cluster() -> Cluster:
    features = {
        "kubernetes": Feature(is_there=True, version="v1.36.2"),
        "kserve": Feature(is_there=True, version="v0.20.0"),
        "keda": Feature(is_there=False),
        "gateway-api": Feature(None, why="The portal's role has no permission to get gateways."),
    }
    offers = (GpuOffer("nvidia.com/mig-1g.10gb", "NVIDIA-H100", 10240, 2, 14, "mig"),)
    capabilities = Capabilities(
        features=features, gpu_offers=offers, probed_at=clock.now().isoformat()
    )
    return Cluster.objects.create(
        name="prod",
        kind="eks",
        eks_name="prod",
        role_arn="arn:aws:iam::123456789012:role/slipway",
        gateway_url="https://models.example.com",
        is_reachable=False,
        last_error="no route to host",
        capabilities=capabilities.to_json(),
        created_at=clock.now(),
    )


@pytest.mark.parametrize("address", [*ADDRESSES, "/admin/clusters/{pk}/edit"])
def test_pages_are_for_platform_admins(cluster: Cluster, admin: Client, address: str) -> None:
    path = address.format(pk=cluster.pk)

    assert signed_in().get(path).status_code == 403
    assert admin.get(path).status_code == 200


def test_list_shows_health_and_last_error(cluster: Cluster, admin: Client) -> None:
    page = admin.get("/admin/clusters").content.decode()

    assert "Unreachable" in page
    assert "no route to host" in page
    assert "v1.36.2" in page


def test_detail_shows_for_each_feature_its_purpose_and_the_fix(
    cluster: Cluster, admin: Client
) -> None:
    page = admin.get(f"/admin/clusters/{cluster.pk}").content.decode()

    assert "Install KEDA 2.20 or newer." in page
    assert "Scaling on queue length, on a schedule or to zero" in page
    assert "has no permission to get gateways" in page
    assert "nvidia.com/mig-1g.10gb" in page
    assert "manage.py cluster_rbac" in page


def test_connection_is_changed_and_the_name_stays(cluster: Cluster, admin: Client) -> None:
    path = f"/admin/clusters/{cluster.pk}/edit"
    form = {
        "name": "other",
        "kind": "eks",
        "region": "eu-west-1",
        "eks_name": "prod-2",
        "role_arn": "arn:aws:iam::123456789012:role/portal",
        "gateway_url": "https://models.example.com",
    }

    bad = admin.post(path, form | {"role_arn": "portal"})
    good = admin.post(path, form)

    assert bad.status_code == 422
    fix = "enter a role such as arn:aws:iam::123456789012:role/slipway"
    assert page(bad).problem("role_arn") == fix
    assert good.status_code == 302
    row = Cluster.objects.get()
    assert (row.name, row.eks_name, row.region) == ("prod", "prod-2", "eu-west-1")
    assert row.role_arn.endswith("role/portal")
    assert row.gateway_name == "slipway"


def test_unknown_cluster_has_no_page(admin: Client) -> None:
    assert admin.get("/admin/clusters/4711").status_code == 404
    assert admin.get("/admin/clusters/4711/edit").status_code == 404


def test_delivery_through_git_is_chosen_by_platform_admins_only(admin: Client) -> None:
    team = make_team(slug="vision")
    lead: User = make_membership(team=team, role="lead").user
    browser = Client()
    browser.force_login(lead)
    path = "/admin/teams/vision/delivery"
    form = {
        "method": "git",
        "repository_url": "https://git.example.com/fleet.git",
        "branch": "main",
    }

    assert browser.get(path).status_code == 403
    assert browser.post(path, form).status_code == 403
    assert not GitDelivery.objects.exists()
    assert admin.post(path, form).status_code == 302
    assert GitDelivery.objects.get().is_enabled
    assert "https://git.example.com/fleet.git" in admin.get(path).content.decode()
    admin.post(path, form | {"method": "direct"})
    assert not GitDelivery.objects.get().is_enabled


def test_address_with_a_password_is_refused_beside_the_field(admin: Client) -> None:
    make_team(slug="vision")
    form = {
        "method": "git",
        "repository_url": "https://a:b@git.example.com/f.git",
        "branch": "main",
    }

    answer = admin.post("/admin/teams/vision/delivery", form)

    assert answer.status_code == 422
    assert page(answer).problem("repository_url") == (
        "enter an address such as https://git.example.com/platform/fleet.git"
    )
    assert not GitDelivery.objects.exists()


def test_cluster_is_deleted_while_nothing_hangs_on_it(cluster: Cluster, admin: Client) -> None:
    Node.objects.create(
        cluster=cluster, uid="n1", name="n1", first_seen_at=clock.now(), last_seen_at=clock.now()
    )
    workload = Workload.objects.create(
        cluster=cluster,
        team=make_team(),
        namespace="vision",
        name="detector",
        created_at=clock.now(),
    )
    address = f"/admin/clusters/{cluster.pk}/delete"

    refused = admin.post(address, follow=True)
    by_rest = admin.delete(f"/api/v1/clusters/{cluster.pk}")

    assert "The cluster cannot be deleted: 1 workload uses it." in refused.content.decode()
    assert (by_rest.status_code, by_rest.json()["code"]) == (409, "cluster_in_use")
    assert Cluster.objects.count() == Node.objects.count() == 1
    assert not AuditEvent.objects.filter(action="cluster.deleted").exists()
    workload.delete()
    done = admin.post(address, follow=True)
    assert "prod deleted." in done.content.decode()
    assert not Cluster.objects.exists()
    assert not Node.objects.exists()
    event = AuditEvent.objects.get(action="cluster.deleted")
    assert (event.object_label, event.before["eks_name"]) == ("prod", "prod")
    assert admin.post(address).status_code == 404


def test_cluster_with_hours_without_a_price_stays(cluster: Cluster, admin: Client) -> None:
    node = Node.objects.create(
        cluster=cluster, uid="n1", name="n1", first_seen_at=clock.now(), last_seen_at=clock.now()
    )
    UnpricedHour.objects.create(node=node, hour=clock.now())

    answer = admin.delete(f"/api/v1/clusters/{cluster.pk}")

    assert answer.status_code == 409
    assert "1 of its hours have no price yet" in answer.json()["detail"]
    assert Cluster.objects.exists()


def test_only_platform_admins_delete_clusters(cluster: Cluster) -> None:
    member = signed_in()

    assert member.post(f"/admin/clusters/{cluster.pk}/delete").status_code == 403
    assert member.delete(f"/api/v1/clusters/{cluster.pk}").status_code == 403
    assert Cluster.objects.exists()
