"""Approval rules and delegates on the admin pages, and the pages of a change under them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from html import unescape

import pytest
from django.test import Client

from deployments.approvals.services import rules
from deployments.approvals.services.rules import RuleDraft
from deployments.changes.selectors.subjects import deployment_of
from deployments.changes.services import decisions, emergency_override, requests
from deployments.lifecycle.services import stop
from deployments.models import ApprovalRule, ChangeRequest, Deployment, EmergencyReview, Revision
from portal.accounts.models import Delegation, User
from portal.audit.models import AuditEvent
from tests.deployments.decided_changes import request_change
from tests.deployments.world import World
from tests.page import page

SignIn = Callable[[User], Client]
ONE = "/vision/deployments/detector"
RULE = {
    "name": "Production on H100",
    "team": "vision",
    "environments": ["production"],
    "kinds": ["deploy", "canary"],
    "above_month_amount": "700",
    "gpus": "h100, p5.*",
    "needed": "2",
    "role": "lead",
    "people": "viewer",
}


def test_an_admin_writes_edits_and_disables_a_rule(world: World, signed_in: SignIn) -> None:
    client = signed_in(world.admin)
    assert "Four eyes" in client.get("/admin/policy").content.decode()

    assert client.post("/admin/policy", RULE).status_code == 302
    row = ApprovalRule.objects.get()
    assert (row.team, row.kinds, row.gpus) == (world.team, ["deploy", "canary"], ["h100", "p5.*"])
    assert (row.above_month_amount, row.needed) == (Decimal("700.00"), 2)
    assert "Production on H100" in client.get("/admin/policy").content.decode()
    assert page(client.get(f"/admin/policy/{row.pk}")).field("gpus").value == "h100, p5.*"

    client.post(f"/admin/policy/{row.pk}", {**RULE, "needed": "3"})
    client.post(f"/admin/policy/{row.pk}/switch")

    row.refresh_from_db()
    assert (row.needed, row.is_enabled) == (3, False)
    assert "Disabled" in client.get("/admin/policy").content.decode()
    assert AuditEvent.objects.filter(action="approval_rule.changed").count() == 2


def test_a_rule_is_deleted_when_no_request_needs_it(world: World, signed_in: SignIn) -> None:
    row = rules.make(actor=world.admin, draft=RuleDraft(name="two", needed=2))
    change = request_change(world)
    client = signed_in(world.admin)

    refused = client.post(f"/admin/policy/{row.pk}/delete", follow=True)
    by_rest = client.delete(f"/api/v1/approval-rules/{row.pk}")

    assert "two cannot be deleted: 1 open request needs its approval." in unescape(
        refused.content.decode()
    )
    assert (by_rest.status_code, by_rest.json()["code"]) == (409, "rule_in_use")
    assert ApprovalRule.objects.filter(pk=row.pk).exists()
    assert not AuditEvent.objects.filter(action="approval_rule.deleted").exists()
    decisions.reject(actor=world.lead, change_id=change.pk, comment="no")
    done = client.post(f"/admin/policy/{row.pk}/delete", follow=True)
    assert "two deleted." in done.content.decode()
    assert not ApprovalRule.objects.exists()
    event = AuditEvent.objects.get(action="approval_rule.deleted")
    assert (event.object_label, event.before["needed"]) == ("two", 2)
    assert client.post(f"/admin/policy/{row.pk}/delete").status_code == 404


def test_an_invalid_rule_is_reported_at_its_field_and_kept(world: World, signed_in: SignIn) -> None:
    answer = signed_in(world.admin).post("/admin/policy", {**RULE, "people": "ghost"})

    form = page(answer)
    assert answer.status_code == 422
    assert "there is no ghost" in form.text
    assert form.field("name").value == "Production on H100"
    assert not ApprovalRule.objects.exists()


@pytest.mark.parametrize("person", ["member", "lead", "viewer", "stranger"])
def test_only_admins_see_or_write_rules(world: World, signed_in: SignIn, person: str) -> None:
    row = rules.make(actor=world.admin, draft=RuleDraft(name="two", needed=2))
    client = signed_in(getattr(world, person))

    assert client.get("/admin/policy").status_code == 403
    assert client.post("/admin/policy", RULE).status_code == 403
    assert client.post(f"/admin/policy/{row.pk}", RULE).status_code == 403
    assert client.post(f"/admin/policy/{row.pk}/switch").status_code == 403
    assert client.post(f"/admin/policy/{row.pk}/delete").status_code == 403
    assert client.delete(f"/api/v1/approval-rules/{row.pk}").status_code == 403
    assert ApprovalRule.objects.get().is_enabled


def test_a_lead_reads_which_rule_applies_and_who_is_still_needed(
    world: World, signed_in: SignIn
) -> None:
    rules.make(
        actor=world.admin,
        draft=RuleDraft(name="Over 700", needed=2, above_month_amount=Decimal(700)),
    )
    change = requests.request_deploy(actor=world.member, draft=world.draft())
    client = signed_in(world.lead)
    data = {"decision": "approve", "evidence_hash": change.evidence_hash, "comment": ""}
    client.post(f"/approvals/{change.pk}", data)

    shown = page(client.get(f"/approvals/{change.pk}"))

    assert "1 of 2 approvals by a lead or platform admin" in shown.text
    assert "rule “Over 700”: every change that may cost $734 a month, above $700" in shown.text
    assert "Waiting for lead2" in [line.text for line in shown.all("p")]
    assert "Approve" not in shown.buttons
    assert "You have already approved this" in shown.text
    other = signed_in(world.lead2).get("/approvals").content.decode()
    assert "1 of 2 approvals" in other


def test_an_emergency_is_marked_everywhere_until_it_is_reviewed(
    world: World, signed_in: SignIn
) -> None:
    change = requests.request_deploy(actor=world.member, draft=world.draft())
    client, other = signed_in(world.lead), signed_in(world.lead2)
    address = f"/approvals/{change.pk}"
    data = {"decision": "emergency", "evidence_hash": change.evidence_hash}
    short = client.post(address, {**data, "comment": "now"})
    assert short.status_code == 422
    assert "Give the reason for the override" in short.content.decode()

    assert client.post(address, {**data, "comment": "Checkout is down."}).status_code == 302

    assert "Emergency override" in client.get(address).content.decode()
    assert "Emergency override: Deploy detector:1" in other.get("/vision").content.decode()
    assert "Emergencies to review" in other.get("/approvals").content.decode()
    assert "Close review" not in client.get(address).content.decode()
    assert client.post(address, {"decision": "close_review", "comment": "ok"}).status_code == 403
    other.post(address, {"decision": "close_review", "comment": "It was right."})
    assert EmergencyReview.objects.get().closed_by == world.lead2
    assert "It was right." in other.get(address).content.decode()
    assert "Emergencies to review" not in other.get("/approvals").content.decode()


def test_a_lead_names_a_delegate_and_another_ends_it(world: World, signed_in: SignIn) -> None:
    client = signed_in(world.lead)
    until = (world.clock.at + timedelta(days=5)).date().isoformat()
    data = {"username": "member", "ends_on": until, "reason": "holidays"}

    client.post("/admin/teams/vision/delegates", data)

    made = Delegation.objects.get()
    shown = page(client.get("/admin/teams/vision")).text
    assert (made.lead, made.delegate) == (world.lead, world.member)
    assert "member on behalf of lead" in shown
    assert "holidays" in shown
    signed_in(world.lead2).post(f"/admin/teams/vision/delegates/{made.pk}/end")
    made.refresh_from_db()
    assert made.ended_at is not None


def test_a_refused_delegate_stays_as_typed_beside_the_reason(
    world: World, signed_in: SignIn
) -> None:
    until = (world.clock.at + timedelta(days=90)).date().isoformat()
    data = {"username": "member", "ends_on": until, "reason": "a whole summer"}

    answer = signed_in(world.lead).post("/admin/teams/vision/delegates", data)

    page = answer.content.decode()
    assert answer.status_code == 422
    assert "at most 60 days" in page
    assert 'aria-invalid="true"' in page
    assert "a whole summer" in page
    assert not Delegation.objects.exists()


@pytest.mark.parametrize(
    ("person", "status"), [("member", 403), ("viewer", 403), ("admin", 403), ("stranger", 404)]
)
def test_only_a_lead_names_a_delegate(
    world: World, signed_in: SignIn, person: str, status: int
) -> None:
    until = (world.clock.at + timedelta(days=5)).date().isoformat()
    data = {"username": "viewer", "ends_on": until, "reason": "holidays"}

    answer = signed_in(getattr(world, person)).post("/admin/teams/vision/delegates", data)

    assert answer.status_code == status
    assert not Delegation.objects.exists()


def test_replicas_are_requested_on_a_page(world: World, signed_in: SignIn) -> None:
    world.serving()
    client = signed_in(world.member)
    assert "now: 1, 1 GPU of g5.xlarge each" in " ".join(
        client.get(f"{ONE}/scale").content.decode().split()
    )
    wrong = client.post(f"{ONE}/scale", {"min_replicas": "3", "max_replicas": "2"})
    assert wrong.status_code == 422

    client.post(f"{ONE}/scale", {"min_replicas": "2", "max_replicas": "3", "comment": "Friday"})

    change = ChangeRequest.objects.get(kind="scale")
    kept = {name: change.scale[name] for name in ("revision", "min_replicas", "max_replicas")}
    assert kept == {"revision": 1, "min_replicas": 2, "max_replicas": 2}
    page = client.get(f"/approvals/{change.pk}").content.decode()
    assert "Scale detector" in page
    assert "Max replicas" in page
    assert "Fixed at 2 replicas: request queues can&#x27;t be measured on this cluster" in page
    again = client.get(f"/approvals/{change.pk}?checks=now").content.decode()
    assert "Fixed at 2 replicas" in again


def test_a_member_stops_and_requests_a_start(world: World, signed_in: SignIn) -> None:
    deployment = world.serving(environment="staging")
    client = signed_in(world.member)
    assert f"{ONE}/stop" in page(client.get(ONE)).links.values()
    assert "returns 404 until it is started again" in client.get(f"{ONE}/stop").content.decode()

    client.post(f"{ONE}/stop", {"comment": "too dear"})
    world.reconcile_now(deployment)

    stopped = page(client.get(ONE))
    assert "Stopped" in stopped.text
    assert f"{ONE}/start" in stopped.links.values()
    assert f"{ONE}/scale" not in stopped.links.values()
    client.post(f"{ONE}/start", {"comment": ""})
    assert ChangeRequest.objects.filter(kind="start", state="submitted").exists()


@pytest.mark.parametrize(("person", "status"), [("viewer", 403), ("stranger", 404)])
@pytest.mark.parametrize("what", ["stop", "scale", "start"])
def test_who_may_not_change_the_life_of_a_deployment(
    world: World, signed_in: SignIn, person: str, status: int, what: str
) -> None:
    world.serving()

    answer = signed_in(getattr(world, person)).post(f"{ONE}/{what}", {"comment": ""})

    assert answer.status_code == status
    assert not Deployment.objects.get().is_stopped


def test_an_open_review_stays_when_the_deployment_is_stopped(world: World) -> None:
    change = requests.request_deploy(actor=world.member, draft=world.draft())
    emergency_override.approve(
        actor=world.lead,
        change_id=change.pk,
        evidence_hash=change.evidence_hash,
        reason="Checkout is down.",
    )
    world.work()

    stop.stop(actor=world.member, deployment_id=deployment_of(change).pk)

    assert EmergencyReview.objects.get().closed_at is None


def test_any_revision_is_one_click_away(world: World, signed_in: SignIn) -> None:
    deployment = world.serving()
    first = deployment.stable_revision
    second = Revision.objects.create(
        deployment=deployment,
        number=2,
        version=world.version2,
        spec=first.spec,
        created_by=world.member,
        created_at=world.clock.at,
    )
    client = signed_in(world.member)
    page = client.get(f"{ONE}/revisions").content.decode()
    assert "/roll-back?revision=2" in page
    assert "/roll-back?revision=1" not in page

    client.post(f"{ONE}/roll-back", {"revision": "2"})

    change = ChangeRequest.objects.get(kind="roll_back")
    assert (change.state, change.revision.version) == ("submitted", second.version)
