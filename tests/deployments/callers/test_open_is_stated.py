"""Callers need a key unless the requester states that an address is open, and approvers see that."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from deployments.approvals.domain.approver_roles import RequiredRole
from deployments.approvals.services import rules
from deployments.approvals.services.rules import RuleDraft
from deployments.changes.services import requests
from deployments.models import ChangeRequest, Deployment, Revision
from deployments.spec.domain import serving_spec
from deployments.spec.domain.serving_spec import Network, ServingSpec
from fleet.clusters.domain.capabilities import Capabilities, Feature
from fleet.models import Cluster
from portal.core.errors import Forbidden, Invalid
from tests.capabilities import offering
from tests.deployments.callers.test_keys import keyed
from tests.deployments.world import World, cluster_calls, moving_clock, world
from tests.page import page

__all__ = ["cluster_calls", "moving_clock", "world"]
_STEPS = [{"weight": 20, "soak_seconds": 0, "min_requests": 0}]
_SENTENCE = "Anyone who reaches the gateway can call it, without a key."
_SPEC = {"engine": "kserve-triton", "instance_type": "g5.xlarge"}


def with_keys(world: World) -> None:
    row = Cluster.objects.get(pk=world.cluster_id)
    known = Capabilities.from_json(row.capabilities)
    features = {**known.features, "caller-keys": Feature(is_there=True)}
    row.capabilities = Capabilities(
        features=features, excluded_engines=known.excluded_engines
    ).to_json()
    row.save()


def requested(world: World, **spec: Any) -> Any:
    client = APIClient()
    client.force_authenticate(world.member)
    body = {
        "version_id": world.version1.pk,
        "cluster_id": world.cluster_id,
        "name": "detector",
        "spec": {**_SPEC, **spec},
    }
    return client.post("/api/v1/deployments", body, format="json")


def canary(world: World, deployment: Deployment, **spec: Any) -> ChangeRequest:
    return requests.request_canary(
        actor=world.member,
        deployment_id=deployment.pk,
        version_id=world.version2.pk,
        steps=_STEPS,
        spec=ServingSpec.from_json({**_SPEC, **spec}),
    )


def seen_by(user: Any, path: str) -> str:
    client = Client()
    client.force_login(user)
    return page(client.get(path)).text


def test_a_request_that_does_not_say_who_may_call_needs_keys(world: World) -> None:
    with_keys(world)

    made = requested(world, network={"service_monitor": False})

    assert made.status_code == 201, made.data
    assert (made.data["access"], made.data["opens_address"]) == ("keys", False)
    assert made.data["revision"]["spec"]["network"]["access"] == "keys"
    assert _SENTENCE not in seen_by(world.lead, f"/approvals/{made.data['id']}")


def test_an_open_address_is_stated_and_its_approver_reads_it(world: World) -> None:
    with_keys(world)

    made = requested(world, network={"access": "open"})

    assert (made.data["access"], made.data["opens_address"]) == ("open", True)
    assert made.data["state"] == "submitted", "nobody but an approver opens an address"
    assert [row["rule"] for row in made.data["required_approvals"]] == ["Four eyes"]
    assert _SENTENCE in seen_by(world.lead, f"/approvals/{made.data['id']}")
    assert "public, no key" in seen_by(world.lead, "/approvals")


def test_where_the_gateway_checks_no_keys_the_request_asks_for_the_open_choice(
    world: World,
) -> None:
    refused = requested(world)
    opened = requested(world, network={"access": "open"})

    assert refused.status_code == 422
    assert "Set network.access to open if anyone who reaches the gateway may call it" in str(
        refused.data
    )
    assert (opened.status_code, ChangeRequest.objects.count()) == (201, 1)


@pytest.mark.parametrize("access", ["open", "keys"])
def test_a_canary_that_does_not_say_who_may_call_keeps_it(world: World, access: str) -> None:
    deployment = keyed(world) if access == "keys" else world.serving()

    change = canary(world, deployment, network={"service_monitor": False})

    assert change.revision is not None
    assert change.revision.spec["network"]["access"] == access
    assert _SENTENCE not in seen_by(world.lead, f"/approvals/{change.pk}")


@pytest.mark.parametrize("access", ["open", "keys"])
@pytest.mark.parametrize("network", [None, {}, {"service_monitor": True}])
def test_a_canary_by_rest_that_does_not_say_who_may_call_keeps_it(
    world: World, access: str, network: dict[str, Any] | None
) -> None:
    with_keys(world)
    deployment = world.serving(network=Network.from_json({"access": access}))
    client = APIClient()
    client.force_authenticate(world.member)
    spec = _SPEC if network is None else {**_SPEC, "network": network}
    body = {"kind": "canary", "version_id": world.version2.pk, "steps": _STEPS, "spec": spec}

    made = client.post(f"/api/v1/deployments/{deployment.pk}/changes", body, format="json")

    assert made.status_code == 201, made.data
    assert (made.data["access"], made.data["opens_address"]) == (access, False)


def test_a_rule_for_opening_sees_a_canary_that_opens_and_no_other(world: World) -> None:
    rules.make(
        actor=world.admin,
        draft=RuleDraft(name="Opening", only_opening=True, role=RequiredRole.ADMIN),
    )
    deployment = keyed(world)

    opening = canary(world, deployment, network={"access": "open"})
    needed = [(row["rule"], row["why"], row["role"]) for row in opening.required]
    with pytest.raises(Forbidden, match="0 of 1 approval by a platform admin"):
        world.approved(opening)

    assert needed == [("Opening", "every change that opens an address to everyone", "admin")]
    opening.refresh_from_db()
    assert opening.state == "submitted"


def test_a_roll_back_to_an_open_revision_opens_the_address(world: World) -> None:
    deployment = keyed(world)
    stable = deployment.stable_revision
    assert stable is not None
    spec = {**stable.spec, "network": {**stable.spec["network"], "access": "open"}}
    Revision.objects.create(
        deployment=deployment,
        number=7,
        version=stable.version,
        spec=spec,
        created_by=world.member,
        created_at=world.clock.at,
    )

    change = requests.request_roll_back(
        actor=world.member, deployment_id=deployment.pk, revision_number=7
    )

    assert _SENTENCE in seen_by(world.lead, f"/approvals/{change.pk}")


def test_no_spec_is_open_that_does_not_state_it() -> None:
    data = ServingSpec.from_json(_SPEC).to_json()
    del data["network"]["access"]

    assert serving_spec.read_stored(data).network.access == "keys"
    del data["network"]
    assert serving_spec.read_stored(data).network.access == "keys"
    assert ServingSpec.from_json(_SPEC).network.access == "keys"


def test_the_form_shows_the_choice_openly_and_says_why_one_is_off(
    world: World,
) -> None:
    with_keys(world)
    client = Client()
    client.force_login(world.member)
    typed = {
        "version": str(world.version1.pk),
        "cluster": str(world.cluster_id),
        "name": "street",
        "engine": "kserve-triton",
        "share": "g5.xlarge|nvidia.com/gpu|1",
    }

    first = client.post("/vision/deployments/new", typed)
    opened = client.post("/vision/deployments/new", {**typed, "network_access": "open"})
    Cluster.objects.update(capabilities=offering("kserve-triton", "triton"))
    unable = client.post("/vision/deployments/new", typed)

    assert page(first).field("network_access").value == "keys"
    assert page(opened).field("network_access").value == "open"
    assert "Off: Callers with a key: Could not check Keys at the gateway." in page(unable).text


def test_a_request_for_keys_where_there_are_none_changes_nothing(world: World) -> None:
    with pytest.raises(Invalid, match=r"network\.access"):
        requests.request_deploy(
            actor=world.member, draft=world.draft(network=Network(access="keys"))
        )

    assert not ChangeRequest.objects.exists()
    assert not Deployment.objects.exists()
