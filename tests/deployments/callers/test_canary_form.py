"""Who may call an address is changed in the form of a canary, as by REST."""

from __future__ import annotations

from typing import Any, cast

import pytest
from django.forms import ChoiceField
from django.test import Client

from deployments.changes.web.canary_form import CanaryForm
from deployments.models import ChangeRequest
from deployments.plans.domain.rollout_plan import PlanKind
from fleet.models import Cluster
from portal.accounts.models import User
from portal.audit.models import AuditEvent
from tests.capabilities import offering
from tests.deployments.callers.test_keys import keyed
from tests.deployments.callers.test_open_is_stated import with_keys
from tests.deployments.plans.test_plan_form import ROWS
from tests.deployments.world import World, cluster_calls, moving_clock, world
from tests.page import page

__all__ = ["cluster_calls", "moving_clock", "world"]
_URL = "/vision/deployments/detector/canary"
_OPENS = "Anyone who reaches the gateway can call it, without a key."
_SIDE: dict[str, Any] = {"HTTP_HX_REQUEST": "true", "HTTP_HX_TARGET": "plan-side"}


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def typed(world: World, **changed: Any) -> dict[str, Any]:
    return {
        "version": str(world.version2.pk),
        "has_plan": "1",
        **ROWS,
        "kind": PlanKind.CANARY.value,
        "steps-0-weight": "20",
        "steps-0-soak_minutes": "0",
        "steps-0-min_requests": "0",
        **changed,
    }


def choices(world: World, name: str = "access") -> list[tuple[str, str]]:
    form = browser(world.member).get(_URL).context["form"]
    assert isinstance(form, CanaryForm)
    field = cast("ChoiceField", form.fields[name])
    return [(str(value), str(label)) for value, label in cast("Any", field.choices)]


@pytest.mark.parametrize(("now", "then"), [("open", "keys"), ("keys", "open")])
def test_a_canary_changes_who_may_call(world: World, now: str, then: str) -> None:
    deployment = keyed(world) if now == "keys" else world.serving()
    with_keys(world)

    answer = browser(world.member).post(_URL, typed(world, access=then))

    change = ChangeRequest.objects.get(kind="canary")
    assert answer["Location"] == f"/approvals/{change.pk}"
    assert change.revision is not None
    assert deployment.stable_revision is not None
    before = deployment.stable_revision.spec
    network = {**before["network"], "access": then}
    assert change.revision.spec == {**before, "network": network}
    shown = page(browser(world.lead).get(f"/approvals/{change.pk}")).text
    assert (_OPENS in shown) is (then == "open")


@pytest.mark.parametrize("access", ["open", "keys"])
def test_nothing_chosen_keeps_it(world: World, access: str) -> None:
    keyed(world) if access == "keys" else world.serving()

    browser(world.member).post(_URL, typed(world))

    revision = ChangeRequest.objects.get(kind="canary").revision
    assert revision is not None
    assert revision.spec["network"]["access"] == access


def test_the_form_offers_the_other_choice_and_the_version_that_serves(world: World) -> None:
    world.serving()
    with_keys(world)

    assert choices(world) == [
        ("", "Unchanged: Public (no authentication)"),
        ("keys", "Callers with a key"),
    ]
    assert choices(world, "version") == [
        (str(world.version2.pk), "detector:2 · accuracy 0.92"),
        (str(world.version1.pk), "detector:1 · serves now"),
    ]


def test_keys_are_off_with_the_reason_where_the_gateway_checks_none(world: World) -> None:
    world.serving()
    Cluster.objects.update(capabilities=offering("kserve-triton", "triton"))
    client = browser(world.member)

    form = client.get(_URL).context["form"]
    posted = client.post(_URL, typed(world, access="keys"))

    assert choices(world) == [("", "Unchanged: Public (no authentication)")]
    assert form.fields["access"].help_text.startswith("Keys cannot be chosen: Could not check")
    assert posted.status_code == 422
    assert not ChangeRequest.objects.filter(kind="canary").exists()


def test_the_serving_version_alone_is_no_change(world: World) -> None:
    world.serving()
    with_keys(world)
    client, audited = browser(world.member), AuditEvent.objects.count()

    same = client.post(_URL, typed(world, version=str(world.version1.pk)))

    assert same.status_code == 422
    assert "This version is already serving." in page(same).text
    assert not ChangeRequest.objects.filter(kind="canary").exists()
    assert AuditEvent.objects.count() == audited
    kept = client.post(
        _URL, typed(world, version=str(world.version1.pk), keep="1", keep_as="slowly")
    )
    assert kept.status_code == 302, "a template has no version"

    client.post(_URL, typed(world, version=str(world.version1.pk), access="keys"))

    change = ChangeRequest.objects.get(kind="canary")
    assert change.revision is not None
    assert (change.revision.version, change.revision.spec["network"]["access"]) == (
        world.version1,
        "keys",
    )


def test_the_side_says_what_the_choice_means(world: World) -> None:
    keyed(world)

    opened = browser(world.member).post(_URL, typed(world, access="open"), **_SIDE)
    kept = browser(world.member).post(_URL, typed(world), **_SIDE)

    assert f"{_OPENS} The approver sees this." in page(opened).text
    assert _OPENS not in page(kept).text


def test_the_tab_callers_leads_to_the_form_with_keys_chosen(world: World) -> None:
    world.serving()
    with_keys(world)
    tab = "/vision/deployments/detector/callers"
    client = browser(world.member)

    link = f"{_URL}?version={world.version1.pk}&access=keys"
    form = client.get(link).context["form"]

    assert link.replace("&", "&amp;") in client.get(tab).content.decode()
    assert link.replace("&", "&amp;") not in browser(world.viewer).get(tab).content.decode()
    assert (form["version"].value(), form["access"].value()) == (str(world.version1.pk), "keys")
