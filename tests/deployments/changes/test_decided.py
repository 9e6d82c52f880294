"""A decided request shows the state at its decision, whatever has changed since."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.test import Client

from deployments.changes.selectors import shown_evidence
from deployments.changes.selectors.subjects import deployment_of
from deployments.changes.services import decisions, emergency_override, recheck, requests
from deployments.changes.services.deployment_subject import DeploymentSubject
from deployments.models import ChangeRequest
from deployments.preflight.domain.checks import Check
from deployments.registry.services import metadata
from fleet.models import Cluster
from portal.accounts.models import User
from tests.deployments.canaries import STEPS
from tests.deployments.world import World
from tests.page import Part, page

SignIn = Callable[[User], Client]
KEPT = "As shown when it was decided"


def page_of(client: Client, change: ChangeRequest) -> Part:
    return page(client.get(f"/approvals/{change.pk}"))


def fresh(change: ChangeRequest) -> ChangeRequest:
    return ChangeRequest.objects.get(pk=change.pk)


def requested_change(world: World) -> ChangeRequest:
    return world.play("requested canary", lambda: _request(world))


def _request(world: World) -> ChangeRequest:
    deployment = world.serving()
    return requests.request_canary(
        actor=world.member, deployment_id=deployment.pk, version_id=world.version2.pk, steps=STEPS
    )


def approve(world: World, change: ChangeRequest) -> ChangeRequest:
    decisions.approve(actor=world.lead, change_id=change.pk, evidence_hash=change.evidence_hash)
    return fresh(change)


def rename(who: User, name: str) -> None:
    User.objects.filter(pk=who.pk).update(first_name=name)


def describe(world: World, **stated: Any) -> None:
    metadata.describe(actor=world.member, version_id=world.version2.pk, metadata=stated)


def test_an_open_request_is_shown_as_it_is_now(world: World, signed_in: SignIn) -> None:
    change = requested_change(world)
    client = signed_in(world.lead)

    describe(world, accuracy=0.5)
    shown = page_of(client, change)

    assert shown.term("Accuracy") == "0.5"
    assert KEPT not in shown.text
    assert change.decided == {}


def test_what_was_shown_stays_and_the_page_says_what_differs_today(
    world: World, signed_in: SignIn
) -> None:
    rename(world.member, "Mina")
    rename(world.lead, "Lena")
    client = signed_in(world.viewer)
    change = approve(world, requested_change(world))
    before = page_of(client, change).text
    assert KEPT in before
    assert "Changed since" not in before

    describe(world, accuracy=0.5)
    rename(world.member, "Someone else")
    rename(world.lead, "Nobody")
    Cluster.objects.update(name="another")
    after = page_of(client, change)

    assert after.term("Accuracy") == "0.92"
    assert "requested by Mina" in after.text
    assert "Lena approved" in after.text
    assert "vision on eks-test" in after.text
    assert (
        "Changed since: the version metadata, the name of the requester, the name of the cluster."
    ) in after.text


def test_the_diff_is_against_what_served_then(world: World) -> None:
    change = approve(world, requested_change(world))
    shown = fresh(change).decided["diff"]

    # The candidate serves by now.
    deployment = change.deployment
    type(deployment).objects.filter(pk=deployment.pk).update(stable_revision=change.revision)

    line = next(line for line in fresh(change).decided["diff"] if line["field"] == "version")
    assert line == {"field": "version", "before": "detector:1", "after": "detector:2"}
    assert fresh(change).decided["diff"] == shown
    assert shown_evidence.collect_evidence(fresh(change)).diff != shown


def test_approvals_that_have_expired_since_still_stand_on_the_page(
    world: World, signed_in: SignIn
) -> None:
    change = approve(world, requested_change(world))
    client = signed_in(world.viewer)

    world.clock.move(30 * 24 * 3600)
    text = page_of(client, change).text

    assert "1 of 1 approval given" in text
    assert "0 of 1 approval" not in text


def test_an_emergency_stays_marked(world: World, signed_in: SignIn) -> None:
    change = requested_change(world)
    emergency_override.approve(
        actor=world.lead,
        change_id=change.pk,
        evidence_hash=change.evidence_hash,
        reason="Checkout is down.",
    )

    world.clock.move(30 * 24 * 3600)

    assert "Emergency override" in page_of(signed_in(world.viewer), change).text


def test_the_checks_are_those_that_the_approver_saw(world: World, monkeypatch: Any) -> None:
    change = requested_change(world)
    checks = DeploymentSubject.checks

    def with_budget(subject: DeploymentSubject, *args: Any) -> Any:
        made, cost = checks(subject, *args)
        return (*made, Check("Budget", ok=None, detail="unsure")), cost

    with monkeypatch.context() as patched:
        patched.setattr(DeploymentSubject, "checks", with_budget)
        recheck.repeat(actor=world.lead, change_id=change.pk)
    change = approve(world, change)

    assert change.decided["checks"][-1]["detail"] == "unsure"
    assert change.checks[-1]["detail"] != "unsure"
    assert change.decided["checked_at"] == change.last_recheck["at"]


def test_a_rejection_and_a_withdrawal_are_kept_too(world: World, signed_in: SignIn) -> None:
    first = requested_change(world)
    decisions.reject(actor=world.lead, change_id=first.pk, comment="not now")
    second = requests.request_canary(
        actor=world.member,
        deployment_id=deployment_of(first).pk,
        version_id=world.version2.pk,
        steps=STEPS,
    )
    decisions.withdraw(actor=world.member, change_id=second.pk)
    client = signed_in(world.viewer)

    describe(world, accuracy=0.5)

    for change in (first, second):
        assert page_of(client, change).term("Accuracy") == "0.92"
    assert [approval["user"] for approval in fresh(first).decided["approvals"]] == ["lead"]


def test_sent_back_to_its_approvers_it_is_open_again(world: World, signed_in: SignIn) -> None:
    change = approve(world, requested_change(world))
    assert change.decided["title"] == "Canary detector:2 on detector"

    describe(world, accuracy=0.5)
    world.work()

    change = fresh(change)
    assert (change.state, change.decided) == ("submitted", {})
    assert page_of(signed_in(world.lead), change).term("Accuracy") == "0.5"


def test_what_was_decided_before_it_was_kept_says_so(world: World, signed_in: SignIn) -> None:
    change = approve(world, requested_change(world))
    ChangeRequest.objects.filter(pk=change.pk).update(decided={})

    text = page_of(signed_in(world.viewer), change).text

    assert "What the approver saw was not stored." in text


def test_the_api_and_the_list_agree(world: World, signed_in: SignIn) -> None:
    rename(world.member, "Mina")
    change = approve(world, requested_change(world))
    rename(world.member, "Someone else")
    client = signed_in(world.viewer)

    body = client.get(f"/api/v1/changes/{change.pk}").json()["decided"]
    decisions.withdraw(actor=world.member, change_id=change.pk)

    assert body["requester"] == "Mina"
    assert body["metadata"] == {"metrics": {"accuracy": 0.92}}
    assert body["approval_status"]["rows"][0]["description"] == "1 of 1 approval given"
    assert "Mina" in client.get("/approvals").content.decode()
