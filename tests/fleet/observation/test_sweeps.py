from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine

from fleet.clusters.selectors import clusters as selected
from fleet.clusters.services import clusters
from fleet.clusters.services.clusters import ClusterDraft
from fleet.costs.selectors import costs
from fleet.kube.domain.connection import Connection
from fleet.kube.domain.errors import ObjectInvalid, Refused, Unreachable
from fleet.kube.gateways import credentials
from fleet.kube.services import objects
from fleet.models import Cluster, GpuLease, Node
from fleet.observation.services import sweep, workloads
from portal.accounts.models import Team
from portal.accounts.policy import SYSTEM
from portal.audit.models import AuditEvent
from portal.core.errors import Forbidden, Invalid, NotFound
from tests.accounts import make_user
from tests.fleet.fakes import FakeKube
from tests.fleet.objects import START, node, pod

pytestmark = pytest.mark.django_db
DRAFT = ClusterDraft(
    name="prod", kind="kubeconfig", kubeconfig_path="/etc/kube", gateway_url="https://m.example/"
)


def sweep_at(seconds: float) -> None:
    with time_machine.travel(START + timedelta(seconds=seconds), tick=False):
        sweep.observe_due()


def test_sweep_writes_rows_and_comes_again_in_five_seconds(
    kube: FakeKube, cluster: Cluster, detector: int
) -> None:
    kube.put(node(), pod())

    sweep_at(0)
    sweep_at(4)
    kube.remove("Pod", "vision", "detector-r1-abc")
    sweep_at(4.9)
    assert GpuLease.objects.get().ended_at is None
    sweep_at(5)

    assert GpuLease.objects.get().ended_at == START
    assert Cluster.objects.get().last_seen_at == START + timedelta(seconds=5)


def test_observing_now_needs_no_lease_and_probes_a_cluster_that_was_just_probed(
    kube: FakeKube, cluster: Cluster
) -> None:
    kube.put(node())
    sweep_at(0)
    before = selected.get_cluster(cluster.pk).capabilities
    kube.put(node("gpu-2", uid="n-2"))
    Cluster.objects.update(lease_until=START + timedelta(minutes=1), lease_token="another worker")

    with time_machine.travel(START + timedelta(seconds=3), tick=False):
        sweep.observe_now(cluster_id=cluster.pk)

    after = selected.get_cluster(cluster.pk).capabilities
    assert before.gpu_offers
    assert after.gpu_offers
    assert [before.gpu_offers[0].nodes, after.gpu_offers[0].nodes] == [1, 2]
    assert Node.objects.count() == 2
    assert Cluster.objects.get().lease_token == "another worker"


def test_sweep_runs_less_often_beside_a_watcher(kube: FakeKube, cluster: Cluster) -> None:
    Cluster.objects.update(watch_seen_at=START)

    sweep_at(0)

    assert Cluster.objects.get().next_check_at == START + timedelta(seconds=30)


def test_unreachable_cluster_is_marked_and_tried_again_later_each_time(
    kube: FakeKube, cluster: Cluster
) -> None:
    kube.put(node())
    sweep_at(0)
    kube.broken = Unreachable("no route to host")

    sweep_at(5)
    sweep_at(7)

    shown = selected.get_cluster(cluster.pk)
    assert (shown.is_reachable, shown.last_error) == (False, "no route to host")
    assert Cluster.objects.get().next_check_at == START + timedelta(seconds=11)
    assert Node.objects.get().gone_at is None
    kube.broken = None
    sweep_at(11)
    assert selected.get_cluster(cluster.pk).is_reachable is True
    assert selected.get_cluster(cluster.pk).last_error == ""


def test_registering_again_changes_only_what_differs() -> None:
    first = clusters.register(actor=SYSTEM, draft=DRAFT)

    second = clusters.register(actor=SYSTEM, draft=DRAFT)

    assert first == second
    assert Cluster.objects.get().gateway_url == "https://m.example"
    assert list(AuditEvent.objects.values_list("action", flat=True)) == ["cluster.registered"]


def test_member_cannot_register_a_cluster() -> None:
    with pytest.raises(Forbidden):
        clusters.register(actor=make_user(), draft=DRAFT)

    assert not Cluster.objects.exists()
    assert not AuditEvent.objects.exists()


@pytest.mark.parametrize("field", ["kubeconfig_path", "prometheus_token_path"])
@pytest.mark.parametrize("named", ["/etc/passwd", "../passwd", "inside/../../x", "link", "."])
def test_credentials_of_clusters_are_files_in_one_folder(
    field: str, named: str, tmp_path: Path, settings: Any
) -> None:
    folder = tmp_path / "credentials"
    folder.mkdir()
    (folder / "link").symlink_to("/etc/passwd")
    settings.SLIPWAY_CLUSTER_CREDENTIALS_DIR = str(folder)
    inside = replace(DRAFT, kubeconfig_path="prod", prometheus_url="https://p.example")
    changed: dict[str, Any] = {field: named}
    draft = replace(inside, **changed)

    with pytest.raises(Invalid) as caught:
        clusters.register(actor=SYSTEM, draft=draft)

    assert set(caught.value.fields) == {field}
    assert str(folder) in caught.value.fields[field]
    assert not Cluster.objects.exists()
    assert not AuditEvent.objects.exists()


def test_kubeconfig_is_named_by_its_file(tmp_path: Path, settings: Any) -> None:
    """A mounted Secret is made of links that stay inside."""
    (tmp_path / "..data").mkdir()
    (tmp_path / "..data" / "prod").write_text("{}")
    (tmp_path / "prod").symlink_to("..data/prod")
    settings.SLIPWAY_CLUSTER_CREDENTIALS_DIR = str(tmp_path)

    clusters.register(actor=SYSTEM, draft=replace(DRAFT, kubeconfig_path="prod"))

    assert Cluster.objects.get().kubeconfig_path == str(tmp_path / "prod")


def test_file_that_left_the_folder_later_is_not_read(tmp_path: Path, settings: Any) -> None:
    settings.SLIPWAY_CLUSTER_CREDENTIALS_DIR = str(tmp_path)
    connection = Connection("prod", "kubeconfig", kubeconfig_path="/etc/hostname")

    with pytest.raises(Refused, match="SLIPWAY_CLUSTER_CREDENTIALS_DIR"):
        credentials.read_access(connection)


def test_kubeconfig_cluster_needs_a_path() -> None:
    draft = ClusterDraft(name="prod", kind="kubeconfig", gateway_url="https://m.example")

    with pytest.raises(Invalid) as caught:
        clusters.register(actor=SYSTEM, draft=draft)

    assert set(caught.value.fields) == {"kubeconfig_path"}


@pytest.mark.parametrize("url", ["https://ana:secret@m.example", "https://m.example\n"])
def test_a_gateway_address_holds_nothing_that_must_not_be_shown(url: str) -> None:
    with pytest.raises(Invalid) as caught:
        clusters.register(actor=SYSTEM, draft=replace(DRAFT, gateway_url=url))

    assert set(caught.value.fields) == {"gateway_url"}
    assert not Cluster.objects.exists()


def test_unknown_cluster_is_not_found() -> None:
    with pytest.raises(NotFound):
        selected.get_cluster(4711)


def manifest(kind: str, name: str) -> dict[str, object]:
    version = {"Deployment": "apps/v1"}.get(kind, "v1")
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "vision"}}


def test_what_pods_need_is_applied_first_and_results_keep_their_order(
    kube: FakeKube, cluster: Cluster
) -> None:
    pushed = [
        manifest("Deployment", "a"),
        manifest("Service", "b"),
        manifest("Namespace", "vision"),
        manifest("Secret", "c"),
    ]

    results = objects.apply(cluster_id=cluster.pk, manifests=pushed)

    assert [result["kind"] for result in results] == [
        "Deployment",
        "Service",
        "Namespace",
        "Secret",
    ]
    assert [kind for kind, _ in kube.applied][:2] == ["Namespace", "Secret"]


def test_refusal_of_one_object_is_raised(kube: FakeKube, cluster: Cluster) -> None:
    kube.broken = ObjectInvalid("spec.replicas must not be negative")

    with pytest.raises(ObjectInvalid):
        objects.apply(cluster_id=cluster.pk, manifests=[manifest("Service", "b")])


def test_deleting_what_is_not_there_is_fine(kube: FakeKube, cluster: Cluster) -> None:
    where = {"api_version": "v1", "kind": "Service", "namespace": "vision", "name": "b"}

    objects.delete(cluster_id=cluster.pk, **where)

    assert objects.get(cluster_id=cluster.pk, **where) is None


def test_workload_registered_twice_is_one_and_comes_back_after_retiring(
    cluster: Cluster, vision: Team, detector: int
) -> None:
    workloads.retire(cluster_id=cluster.pk, namespace="vision", name="detector-r1")

    again = workloads.register(
        cluster_id=cluster.pk,
        team=vision,
        namespace="vision",
        name="detector-r1",
        labels={"deployment": "detector"},
        triton_models=["detector"],
    )

    assert again == detector


def test_gpus_in_use_are_those_held_now(kube: FakeKube, cluster: Cluster, detector: int) -> None:
    kube.put(node(gpus=4), pod("a", units=2), pod("b"))

    sweep_at(0)

    assert costs.gpus_in_use(team_slug="vision") == 3
    assert costs.gpus_in_use(team_slug="nlp") == 0
