"""A deployment on claimed GPUs: offered by the form once claims are on, fit and price counted, requested and approved."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from deployments.changes.services import requests
from deployments.models import ChangeRequest
from deployments.preflight.domain.checks import Preflight
from deployments.preflight.services import preflight
from deployments.spec.domain.serving_spec import Placement
from fleet.models import Node
from fleet.observation.services import record
from portal.accounts.models import User
from tests.deployments.changes.test_deploy_form_guards import text_of
from tests.deployments.changes.test_new_deployment import URL, check, fields_of, send
from tests.deployments.dra_world import dra
from tests.deployments.world import World
from tests.page import page as page_at

__all__ = ["dra"]
WHOLE = "p4de.24xlarge|nvidia.com/gpu|1"
SLICE = "p4de.24xlarge|nvidia.com/mig-1g.10gb|1"
ON: dict[str, Any] = {"instance_type": "p4de.24xlarge", "placement": Placement(device_claims=True)}


def checked(world: World, **changed: Any) -> Preflight:
    return preflight.check(actor=world.member, draft=world.draft(**{**ON, **changed}))


def detail(result: Preflight, name: str) -> str:
    return next(check.detail for check in result.checks if check.name == name)


def test_fit_and_price_are_those_of_the_devices(dra: World) -> None:
    one = checked(dra)
    two = checked(dra, min_replicas=2, max_replicas=2)

    assert detail(one, "Capacity now") == "1 of this size fits now."
    assert one.cost.per_hour == Decimal("9.149")
    assert detail(two, "Capacity now").startswith(
        "1 of 2 fit now: not enough GPU (1 of 2 GPUs free on 1 node)."
    )
    assert one.gpu_name == "NVIDIA A100-SXM4-80GB"
    slice_ = checked(dra, gpu_resource="nvidia.com/mig-1g.10gb")
    assert detail(slice_, "Capacity now") == "1 of this size fits now."
    assert slice_.cost.per_hour == Decimal("1.143625")


def test_where_claims_cannot_be_read_it_says_so_instead_of_a_number(dra: World) -> None:
    record.forget_devices(cluster_id=dra.cluster_id)

    [check] = [one for one in checked(dra).checks if one.name == "Capacity now"]

    assert check.ok is None
    assert check.detail.startswith("Which GPUs are free for claims is not known:")
    assert "cluster_rbac" in check.fix


def test_a_request_is_approved_and_applied_with_a_claim(dra: World) -> None:
    change = requests.request_deploy(actor=dra.member, draft=dra.draft(**ON))
    dra.approved(change)

    kinds = {kind for kind, _, _ in dra.cluster.objects}
    assert "ResourceClaimTemplate" in kinds
    assert change.gpu_name == "NVIDIA A100-SXM4-80GB"


@pytest.fixture
def client(dra: World, signed_in: Callable[[User], Client]) -> Client:
    return signed_in(dra.member)


def test_the_form_offers_what_is_requested_in_the_way_that_was_chosen(
    dra: World, client: Client
) -> None:
    page = check(client, client.get(URL), version=str(dra.version1.pk))
    assert "g5.xlarge|nvidia.com/gpu|1" in text_of(page)
    assert WHOLE not in text_of(page)

    typed = {"name": "street", "network_access": "open", "share": "g5.xlarge|nvidia.com/gpu|1"}
    fields = {**fields_of(check(client, page, **typed)), "placement_device_claims": "on"}
    claimed = client.post(URL, {**fields, "go": "check"})

    # Nothing else is chosen for anyone: it would have another price.
    assert claimed.status_code == 422
    assert "no longer offered in this way. Choose one from the list." in text_of(claimed)
    assert WHOLE in text_of(claimed)
    assert SLICE in text_of(claimed)
    offered = [choice.value for choice in page_at(claimed).fields("share")]
    assert "g5.xlarge|nvidia.com/gpu|1" not in offered
    assert WHOLE in offered
    sent = send(client, check(client, claimed, share=WHOLE))
    assert sent.status_code == 302
    change = ChangeRequest.objects.get()
    assert change.revision is not None
    assert change.revision.spec["placement"]["device_claims"] is True
    assert change.revision.spec["instance_type"] == "p4de.24xlarge"


def test_where_all_gpus_are_claimed_the_form_says_what_to_turn_on(
    dra: World, client: Client
) -> None:
    Node.objects.exclude(name="dra-1").delete()

    page = check(client, client.get(URL), version=str(dra.version1.pk))

    assert "The GPUs of eks-test are claimed." in text_of(page)
    assert "Turn “Request GPUs by ResourceClaim” on." in text_of(page)


def test_rest_says_which_shares_have_to_be_claimed(dra: World, client: Client) -> None:
    shares = client.get(f"/api/v1/clusters/{dra.cluster_id}/shares").json()

    claimed = {share["instance_type"]: share["is_claimed"] for share in shares}
    assert claimed == {"g5.xlarge": False, "p4de.24xlarge": True}
