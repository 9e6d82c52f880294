"""What a platform admin sees of clusters, and how a team's delivery is chosen."""

from __future__ import annotations

import pytest
from django.test import Client

from deployments.models import GitDelivery
from fleet.domain.capabilities import Capabilities, Feature, GpuOffer
from fleet.models import Cluster
from portal.accounts.models import User
from portal.core import clock
from tests.factories import MembershipFactory, TeamFactory, UserFactory

pytestmark = pytest.mark.django_db
ADDRESSES = ("/admin/clusters", "/admin/clusters/new", "/admin/clusters/{pk}")


def signed_in(**values: object) -> Client:
    client = Client()
    client.force_login(UserFactory(**values))
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
        "gateway-api": Feature(None, why="The portal's role lacks the permission to get gateways."),
    }
    offers = (GpuOffer("nvidia.com/mig-1g.10gb", "NVIDIA-H100", 10240, 2, 14, "mig"),)
    found = Capabilities(features=features, gpu_offers=offers, probed_at=clock.now().isoformat())
    return Cluster.objects.create(
        name="prod",
        kind="eks",
        eks_name="prod",
        role_arn="arn:aws:iam::123456789012:role/slipway",
        gateway_url="https://models.example.com",
        is_reachable=False,
        last_error="no route to host",
        capabilities=found.to_json(),
        created_at=clock.now(),
    )


@pytest.mark.parametrize("address", [*ADDRESSES, "/admin/clusters/{pk}/edit"])
def test_pages_are_for_platform_admins(cluster: Cluster, admin: Client, address: str) -> None:
    path = address.format(pk=cluster.pk)

    assert signed_in().get(path).status_code == 403
    assert admin.get(path).status_code == 200


def test_list_tells_health_and_last_error(cluster: Cluster, admin: Client) -> None:
    page = admin.get("/admin/clusters").content.decode()

    assert "Unreachable" in page
    assert "no route to host" in page
    assert "v1.36.2" in page


def test_detail_tells_of_each_feature_what_it_is_for_and_what_to_do(
    cluster: Cluster, admin: Client
) -> None:
    page = admin.get(f"/admin/clusters/{cluster.pk}").content.decode()

    assert "Install KEDA." in page
    assert "no scaling on queue length, on a schedule or to zero" in page
    assert "lacks the permission to get gateways" in page
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
    assert 'id="id_role_arn_error"' in bad.content.decode()
    assert good.status_code == 302
    found = Cluster.objects.get()
    assert (found.name, found.eks_name, found.region) == ("prod", "prod-2", "eu-west-1")
    assert found.role_arn.endswith("role/portal")
    assert found.gateway_name == "slipway"


def test_unknown_cluster_has_no_page(admin: Client) -> None:
    assert admin.get("/admin/clusters/4711").status_code == 404
    assert admin.get("/admin/clusters/4711/edit").status_code == 404


def test_delivery_through_git_is_chosen_by_platform_admins_only(admin: Client) -> None:
    team = TeamFactory(slug="vision")
    lead: User = MembershipFactory(team=team, role="lead").user
    browser = Client()
    browser.force_login(lead)
    path = "/admin/teams/vision/delivery"
    form = {"way": "git", "repository_url": "https://git.example.com/fleet.git", "branch": "main"}

    assert browser.get(path).status_code == 403
    assert browser.post(path, form).status_code == 403
    assert not GitDelivery.objects.exists()
    assert admin.post(path, form).status_code == 302
    assert GitDelivery.objects.get().is_enabled
    assert "https://git.example.com/fleet.git" in admin.get(path).content.decode()
    admin.post(path, form | {"way": "straight"})
    assert not GitDelivery.objects.get().is_enabled


def test_address_with_a_password_is_refused_beside_the_field(admin: Client) -> None:
    TeamFactory(slug="vision")
    form = {"way": "git", "repository_url": "https://a:b@git.example.com/f.git", "branch": "main"}

    answer = admin.post("/admin/teams/vision/delivery", form)

    assert answer.status_code == 422
    assert 'id="id_repository_url_error"' in answer.content.decode()
    assert not GitDelivery.objects.exists()
