"""Run by test_setting_in_three_files.py, where placements have the made-up setting of tenancy.py."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from deployments.batch.services import estimates
from deployments.changes.selectors import deployment_descriptions
from deployments.models import BatchJob, ChangeRequest
from deployments.preflight.domain.checks import Check
from deployments.preflight.services import preflight
from deployments.preflight.services.preflight import RevisionPreflight
from deployments.spec.domain import serving_spec
from deployments.spec.domain.placement import catalogue
from deployments.spec.domain.serving_spec import Placement
from fleet.clusters.domain.capabilities import Capabilities, Feature
from fleet.clusters.domain.node_pools import KarpenterRequirement, NodePool
from fleet.models import Cluster, Node
from portal.accounts.models import User
from portal.core.definitions import Rejected
from portal.core.errors import Invalid
from tests.deployments.batch.bench import Bench
from tests.deployments.batch.conftest import bench
from tests.deployments.changes.test_deploy_form_guards import filled_in, summary_of
from tests.deployments.world import World
from tests.page import page

__all__ = ["bench"]
LABEL = "karpenter.k8s.aws/instance-tenancy"
DEDICATED: dict[str, Any] = {"tenancy": "dedicated"}


@pytest.fixture(autouse=True)
def _dedicated_hardware(world: World) -> None:
    """The policy of the cluster allows it, and Karpenter is there."""
    _capable(world, features={"karpenter": Feature(is_there=True)}, node_pools=())
    Cluster.objects.update(serving={"priority_classes": ["serving-high"]})


def _capable(world: World, **changed: Any) -> None:
    row = Cluster.objects.get(pk=world.cluster_id)
    known = Capabilities.from_json(row.capabilities)
    features = {**known.features, **changed.pop("features", {})}
    row.capabilities = Capabilities(
        features=features, excluded_engines=known.excluded_engines, **changed
    ).to_json()
    row.save()


def _preflight(world: World, **placement: Any) -> RevisionPreflight:
    draft = world.draft(placement=Placement(**placement))
    return preflight.check(actor=world.member, draft=draft)


def _checks(world: World, **placement: Any) -> dict[str, Check]:
    return {check.name: check for check in _preflight(world, **placement).checks}


def _requested(world: World, placement: dict[str, Any]) -> Any:
    client = APIClient()
    client.force_authenticate(world.member)
    spec = {
        "engine": "kserve-triton",
        "instance_type": "g5.xlarge",
        "network": {"access": "open"},
        "placement": placement,
    }
    body = {"version_id": world.version1.pk, "cluster_id": world.cluster_id}
    return client.post("/api/v1/deployments", {**body, "name": "street", "spec": spec}, "json")


def test_rest_takes_it_stores_it_and_refuses_other_values(world: World) -> None:
    unknown = _requested(world, {"tenancy": "rented"})
    ruled_out = _requested(world, {"tenancy": "dedicated", "capacity": "spot"})
    made = _requested(world, DEDICATED)

    assert unknown.status_code == 422
    assert unknown.data["errors"][0]["field"] == "spec.placement.tenancy"
    assert "Spot nodes share hardware." in str(ruled_out.data)
    assert made.status_code == 201, made.data
    assert made.data["revision"]["spec"]["placement"]["tenancy"] == "dedicated"
    stored = ChangeRequest.objects.get().revision
    assert stored is not None
    assert stored.spec["placement"]["tenancy"] == "dedicated"


def test_a_spec_that_was_stored_before_it_existed_has_the_default() -> None:
    spec = serving_spec.read_stored(
        {"engine": "triton", "instance_type": "g5.xlarge", "placement": {}}
    )

    assert spec.to_json()["placement"]["tenancy"] == "default"
    with pytest.raises(Rejected):
        Placement.from_json({"tenancy": "rented"})


def test_the_form_offers_it_and_its_section_says_it(
    world: World, signed_in: Callable[[User], Client]
) -> None:
    client = signed_in(world.member)
    shown = page(filled_in(world, client, placement_tenancy="dedicated"))

    assert summary_of(shown, "Placement") == "on-demand, spread across zones, dedicated hardware"
    assert catalogue.describe(Placement(**DEDICATED)) == (
        "on-demand, spread across zones, dedicated hardware"
    )


def test_preflight_asks_the_cluster_and_its_policy(world: World) -> None:
    Cluster.objects.update(serving={"priority_classes": []})
    by_policy = _requested(world, DEDICATED)
    Cluster.objects.update(serving={"priority_classes": ["serving-high"]})
    _capable(world, features={"karpenter": Feature(is_there=False)})
    by_cluster = _requested(world, DEDICATED)

    assert by_policy.status_code == by_cluster.status_code == 422
    assert by_policy.data["errors"] == [
        {
            "field": "placement.tenancy",
            "detail": "eks-test has no dedicated hardware. Use shared hardware.",
        }
    ]
    assert "placement.tenancy: " in str(by_cluster.data)
    assert not ChangeRequest.objects.exists()


def test_fit_counts_only_nodes_that_have_it(world: World) -> None:
    without = _checks(world, **DEDICATED)["Capacity now"]
    Node.objects.filter(name="node-1").update(labels={LABEL: "dedicated"})
    with_one = _checks(world, **DEDICATED)["Capacity now"]

    assert without.ok is False
    assert without.detail.startswith(f"There is no g5.xlarge node with {LABEL}=dedicated")
    assert (with_one.ok, with_one.detail) == (True, "1 of this size fits now.")


def test_a_node_pool_gives_it_or_not_or_it_cannot_be_known(world: World) -> None:
    answers = {}
    for values in (("dedicated",), ("default",), ()):
        required = (KarpenterRequirement(LABEL, "In", values),) if values else ()
        _capable(world, node_pools=(NodePool("gpu", required),))
        check = _checks(world, **DEDICATED)["Capacity now"]
        answers[values] = (check.ok, check.detail.partition("have it. ")[2])

    assert answers == {
        ("dedicated",): (
            True,
            "Node pool gpu will start a g5.xlarge, which takes a few minutes.",
        ),
        ("default",): (
            False,
            f"No node pool starts on-demand g5.xlarge with {LABEL}=dedicated (gpu).",
        ),
        (): (None, "Node pool gpu will start a g5.xlarge, which takes a few minutes."),
    }


def test_it_costs_more_and_the_approver_reads_what_it_is(world: World) -> None:
    shared, dedicated = _preflight(world), _preflight(world, **DEDICATED)
    assert _requested(world, DEDICATED).status_code == 201
    change = ChangeRequest.objects.get()

    assert shared.cost.per_hour is not None
    assert dedicated.cost.per_hour == shared.cost.per_hour * Decimal("1.1")
    assert "1 GPU of dedicated on-demand g5.xlarge" in (
        deployment_descriptions.describe(change).detail
    )


def test_pods_carry_it_and_others_stay_as_they_were(world: World) -> None:
    shared, dedicated = _preflight(world), _preflight(world, **DEDICATED)

    line = f"{LABEL}: dedicated\n"
    assert line in dedicated.manifests
    assert line not in shared.manifests
    assert shared.evidence_hash != dedicated.evidence_hash


def test_batch_jobs_have_it_too(bench: Bench) -> None:
    client = Client()
    client.force_login(bench.world.member)
    bench.put_rows(10)

    def estimated(**changed: Any) -> estimates.Estimate:
        draft = bench.draft(**changed)
        return estimates.check(actor=bench.world.member, team_slug="vision", draft=draft)

    shared, dedicated = estimated(), estimated(**DEDICATED)
    with pytest.raises(Invalid) as refused:
        estimated(**DEDICATED, capacity="spot")
    form = client.get("/vision/batch/new").context["form"]
    assert shared.price.amount is not None
    assert dedicated.price.amount == (shared.price.amount * Decimal("1.1")).quantize(
        Decimal("0.01")
    )
    assert dedicated.capacity.ok is False
    assert refused.value.fields == {"tenancy": "Spot nodes share hardware. Use on-demand nodes."}
    assert "tenancy" in [field.name for field, _ in form.placement_fields]

    bench.running(**DEDICATED)

    (made,) = bench.made("Job")
    assert made["spec"]["template"]["spec"]["nodeSelector"][LABEL] == "dedicated"
    assert BatchJob.objects.get().pods["tenancy"] == "dedicated"
