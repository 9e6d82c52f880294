from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from deployments.models import ChangeRequest
from portal.accounts.models import User
from portal.audit.models import AuditEvent
from tests.deployments.world import World
from tests.page import page
from tests.portal.many_rows.copies import copies, digest

ONE = "/vision/deployments/detector"
SignIn = Callable[[User], Client]


def steps(*weights: int | str) -> dict[str, str]:
    data: dict[str, Any] = {
        "steps-TOTAL_FORMS": "6",
        "steps-INITIAL_FORMS": "0",
        "queries-TOTAL_FORMS": "6",
        "queries-INITIAL_FORMS": "0",
    }
    for index in range(6):
        weight = str(weights[index]) if index < len(weights) else ""
        row = f"steps-{index}"
        data |= {
            f"{row}-weight": weight,
            f"{row}-soak_minutes": "1",
            f"{row}-min_requests": "10",
        }
    return data


def test_a_canary_is_requested_with_its_steps(world: World, signed_in: SignIn) -> None:
    world.serving()
    client = signed_in(world.member)
    assert page(client.get(f"{ONE}/canary")).field("steps-1-weight").value == "25"
    data = {"version": str(world.version2.pk), "comment": "Better.", **steps(10, 50, 100)}

    answer = client.post(f"{ONE}/canary", data)

    change = ChangeRequest.objects.get(kind="canary")
    assert answer["Location"] == f"/approvals/{change.pk}"
    assert [step["weight"] for step in change.steps] == [10, 50, 100]
    assert change.steps[0] == {
        "weight": 10,
        "soak_seconds": 60,
        "min_requests": 10,
        "auto_promote": False,
        "deadline_seconds": None,
    }


@pytest.mark.parametrize("weights", [(50, 10), (0,), (120,), ("x",)])
def test_invalid_steps_are_reported_and_kept(
    world: World, signed_in: SignIn, weights: tuple[int | str, ...]
) -> None:
    world.serving()
    data = {"version": str(world.version2.pk), "comment": "Better.", **steps(*weights)}
    audited = AuditEvent.objects.count()

    answer = signed_in(world.member).post(f"{ONE}/canary", data)

    assert answer.status_code == 422
    assert page(answer).field("steps-0-weight").value == str(weights[0])
    assert "Better." in answer.content.decode()
    assert not ChangeRequest.objects.filter(kind="canary").exists()
    assert AuditEvent.objects.count() == audited


def test_retirement_requires_the_name(world: World, signed_in: SignIn) -> None:
    world.serving()
    client = signed_in(world.member)
    refused = client.post(f"{ONE}/retire", {"confirmation": "detecto", "comment": ""})
    assert refused.status_code == 422
    assert "Type detector to confirm." in refused.content.decode()
    assert not ChangeRequest.objects.filter(kind="retire").exists()

    client.post(f"{ONE}/retire", {"confirmation": "detector", "comment": ""})

    assert ChangeRequest.objects.filter(kind="retire").exists()


def test_a_second_open_change_is_refused_with_a_message(world: World, signed_in: SignIn) -> None:
    world.serving()
    client = signed_in(world.member)
    data = {"confirmation": "detector", "comment": ""}
    client.post(f"{ONE}/retire", data)

    answer = client.post(f"{ONE}/retire", data)

    assert answer.status_code == 409
    assert "withdraw it first" in answer.content.decode()
    assert ChangeRequest.objects.filter(kind="retire").count() == 1


def test_rolling_back_offers_no_revision_that_serves_now(world: World, signed_in: SignIn) -> None:
    world.serving()

    form = page(signed_in(world.member).get(f"{ONE}/roll-back"))

    assert "1" not in form.field("revision").options


def test_of_many_versions_the_newest_and_the_named_one_are_offered(
    world: World, signed_in: SignIn
) -> None:
    world.serving()
    many = copies(world.version2, 110, number=lambda n: 10 + n, sha256=digest)
    old = world.version2
    client = signed_in(world.member)

    form = page(client.get(f"{ONE}/canary")).field("version")
    named = page(client.get(f"{ONE}/canary?version={old.pk}")).field("version")
    data = {"version": str(old.pk), "comment": "Better.", **steps(10, 50, 100)}
    answer = client.post(f"{ONE}/canary", data)

    assert [version for version in many if str(version.pk) in form.options] == many[10:]
    assert str(old.pk) not in form.options
    assert named.value == str(old.pk)
    change = ChangeRequest.objects.get(kind="canary")
    assert answer["Location"] == f"/approvals/{change.pk}"
    assert change.revision is not None
    assert change.revision.version == old
