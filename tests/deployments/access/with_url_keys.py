"""Run by test_kind_in_two_files.py, where the catalogue has the made-up kind of url_keys.py."""

from __future__ import annotations

from typing import Any, cast

import pytest
from django.forms import ChoiceField
from django.test import Client

from deployments.callers.services import usage
from deployments.changes.web.canary_form import CanaryForm
from deployments.models import ChangeRequest, Deployment
from deployments.pipelines.selectors import pipelines
from deployments.spec.domain.serving_spec import Network
from deployments.states import Environment
from fleet.models import Cluster
from portal.accounts.models import User
from portal.core.definitions import Rejected
from tests.capabilities import offering
from tests.deployments.callers.test_keys import at_gateway, make
from tests.deployments.callers.test_open_is_stated import canary, requested, with_keys
from tests.deployments.callers.test_usage import Gateway
from tests.deployments.world import World, cluster_calls, moving_clock, world
from tests.page import page

__all__ = ["cluster_calls", "moving_clock", "world"]
_TAB = "/vision/deployments/detector/callers"
_NAME = "url-keys"


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def serving(world: World) -> Deployment:
    """The open deployment after a canary that has its callers need a key in the URL."""
    with_keys(world)
    deployment = world.serving()
    change = canary(world, deployment, network={"access": _NAME})
    deployment.stable_revision = change.revision
    deployment.save()
    world.work()
    return deployment


def test_the_forms_offer_it(world: World) -> None:
    with_keys(world)
    world.serving()
    client = browser(world.member)
    typed = {
        "version": str(world.version1.pk),
        "cluster": str(world.cluster_id),
        "name": "street",
        "engine": "kserve-triton",
        "share": "g5.xlarge|nvidia.com/gpu|1",
    }

    first = page(client.post("/vision/deployments/new", typed))
    chosen = page(client.post("/vision/deployments/new", {**typed, "network_access": _NAME}))
    form = client.get("/vision/deployments/detector/canary").context["form"]

    assert "Callers with a key in the URL" in first.text
    assert chosen.field("network_access").value == _NAME
    assert isinstance(form, CanaryForm)
    choices = cast("Any", cast("ChoiceField", form.fields["access"]).choices)
    assert (_NAME, "Callers with a key in the URL") in list(choices)


def test_rest_takes_it_and_an_unknown_name_is_refused_with_those_that_there_are(
    world: World,
) -> None:
    with_keys(world)

    unknown = requested(world, network={"access": "handshake"})
    with pytest.raises(Rejected) as refused:
        Network.from_json({"access": "handshake"})
    made = requested(world, network={"access": _NAME})

    assert unknown.status_code == 422
    assert unknown.data["errors"][0]["field"] == "spec.network.access"
    assert refused.value.fields == {"access": "Use one of open, keys, jwt, url-keys."}
    assert made.status_code == 201, made.data
    assert (made.data["access"], made.data["opens_address"]) == (_NAME, False)
    assert made.data["revision"]["spec"]["network"]["access"] == _NAME


def test_preflight_says_what_it_needs(world: World) -> None:
    Cluster.objects.update(capabilities=offering("kserve-triton", "triton"))

    refused = requested(world, network={"access": _NAME})
    world.serving()
    form = browser(world.member).get("/vision/deployments/detector/canary").context["form"]

    assert refused.status_code == 422
    assert "Set network.access open, or ask a platform admin for a gateway that reads URLs." in str(
        refused.data
    )
    assert not ChangeRequest.objects.exclude(deployment__name="detector").exists()
    assert "Keys in the URL cannot be chosen: Could not check" in form.fields["access"].help_text


def test_the_manifests_carry_it_and_a_created_key_opens_it(world: World) -> None:
    deployment = serving(world)
    made = make(world, deployment)

    deployment.refresh_from_db()
    policy = world.cluster.objects["SecurityPolicy", "vision", "detector"]
    route = world.cluster.objects["HTTPRoute", "vision", "detector"]
    written = str(list(world.cluster.objects.values()))
    assert policy["spec"]["apiKeyAuth"]["extractFrom"] == [{"params": ["key"]}]
    assert "'slipway.dev/access': 'url-keys'" in written
    assert at_gateway(world) == {f"billing.{made.row.pk}": made.plain}
    assert route["metadata"]["annotations"] == {
        "slipway.dev/caller-keys": f"url-keys/{deployment.caller_keys_generation}"
    }


def test_the_tab_says_what_it_is_and_what_each_caller_sent(world: World) -> None:
    deployment = serving(world)
    made = make(world, deployment)
    gateway = Gateway(world)

    for count in (12, 30):
        gateway.served[f"billing.{made.row.pk}"] = count
        world.clock.move(10)
        usage.count(cluster_id=world.cluster_id)
    shown = page(browser(world.member).get(_TAB))
    trial = page(browser(world.member).get("/vision/deployments/detector/try"))

    assert "Only callers with a key in the URL get answers." in shown.text
    [sent] = [list(row.values()) for row in shown.rows if "Cost" in row and "billing" in str(row)]
    assert sent[:2] == ["billing", "30"]
    assert "--url-query key=$KEY" in trial.text


def test_no_pipeline_calls_what_does_not_say_how(world: World) -> None:
    serving(world)

    members = pipelines.members_of(
        team=world.team, cluster_id=world.cluster_id, environment=Environment.PRODUCTION
    )

    assert members["detector"].why_not == "detector does not accept the key of a pipeline."
    assert not members["detector"].needs_key
