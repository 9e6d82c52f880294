from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from deployments.changes.selectors import changes
from deployments.changes.selectors.subjects import deployment_of
from deployments.changes.services import decisions, requests
from deployments.models import Approval, ChangeRequest
from deployments.states import ChangeState
from portal.accounts.models import User
from portal.audit.models import AuditEvent
from tests.deployments.signed_in import HTMX
from tests.deployments.world import World
from tests.page import page
from tests.portal.many_rows.copies import copies

SignIn = Callable[[User], Client]
INBOX_QUERIES = 26


@pytest.fixture
def change(world: World) -> ChangeRequest:
    return world.play(
        "requested for Friday",
        lambda: requests.request_deploy(
            actor=world.member, draft=world.draft(), comment="For Friday."
        ),
    )


def decide(client: Client, change: ChangeRequest, decision: str, **typed: str) -> Any:
    data = {"decision": decision, "evidence_hash": change.evidence_hash, "comment": "", **typed}
    return client.post(f"/approvals/{change.pk}", data)


def test_a_lead_finds_the_request_sees_why_and_approves(
    world: World, change: ChangeRequest, signed_in: SignIn
) -> None:
    client = signed_in(world.lead)
    assert "Deploy detector:1 as detector" in client.get("/approvals").content.decode()
    page = client.get(f"/approvals/{change.pk}").content.decode()
    for part in ("For Friday.", "kind: InferenceService", "Quota", "$1.01", "1111111111111111"):
        assert part in page

    answer = decide(client, change, "approve", comment="Looks right.")

    change.refresh_from_db()
    assert answer.status_code == 302
    assert change.state == ChangeState.APPROVED
    approval = Approval.objects.get()
    assert (approval.user, approval.comment) == (world.lead, "Looks right.")
    assert approval.evidence_hash == change.evidence_hash


def test_a_poll_brings_the_decision_only_when_somebody_decided(
    world: World, change: ChangeRequest, signed_in: SignIn
) -> None:
    client, path = signed_in(world.lead2), f"/approvals/{change.pk}"
    poll = f"{path}?shown=submitted-0"
    assert f'hx-get="{poll}"' in client.get(path).content.decode()
    before = client.get(poll, **HTMX, HTTP_HX_TARGET="change-head").content.decode()

    decisions.approve(actor=world.lead, change_id=change.pk, evidence_hash=change.evidence_hash)
    after = client.get(poll, **HTMX, HTTP_HX_TARGET="change-head").content.decode()

    assert "hx-swap-oob" not in before
    assert after.count("hx-swap-oob") == 2
    assert "1 of 1 approval given" in after
    assert 'value="approve"' not in after


def test_an_approver_reads_the_warnings_of_the_cluster(world: World, signed_in: SignIn) -> None:
    warning = "serving.kserve.io/v1beta1 is deprecated"
    world.cluster.warn["InferenceService"] = warning
    change = requests.request_deploy(actor=world.member, draft=world.draft())

    shown = page(signed_in(world.lead).get(f"/approvals/{change.pk}")).text

    assert f"warns: Cluster warnings InferenceService detector-r1: {warning}." in shown


@pytest.mark.parametrize(
    ("person", "status"), [("member", 403), ("viewer", 403), ("stranger", 404)]
)
@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_a_decision_that_is_not_theirs_is_refused_and_changes_nothing(
    world: World, change: ChangeRequest, signed_in: SignIn, person: str, status: int, decision: str
) -> None:
    audited = AuditEvent.objects.count()

    answer = decide(signed_in(getattr(world, person)), change, decision, comment="x")

    change.refresh_from_db()
    assert answer.status_code == status
    assert change.state == ChangeState.SUBMITTED
    assert not Approval.objects.exists()
    assert AuditEvent.objects.count() == audited


def test_an_approval_of_other_evidence_is_refused_and_the_comment_is_kept(
    world: World, change: ChangeRequest, signed_in: SignIn
) -> None:
    answer = decide(
        signed_in(world.lead), change, "approve", evidence_hash="0" * 64, comment="Fine."
    )

    change.refresh_from_db()
    assert answer.status_code == 409
    assert "The request changed after you opened it" in answer.content.decode()
    assert "Fine." in answer.content.decode()
    assert change.state == ChangeState.SUBMITTED


def test_a_rejection_without_a_reason_is_refused_at_the_comment(
    world: World, change: ChangeRequest, signed_in: SignIn
) -> None:
    client = signed_in(world.lead)
    answer = decide(client, change, "reject")
    assert answer.status_code == 422
    assert "say what to change" in answer.content.decode()

    decide(client, change, "reject", comment="Use an L4.")

    change.refresh_from_db()
    assert (change.state, change.state_reason) == (ChangeState.REJECTED, "Use an L4.")


def test_the_requester_sees_why_they_cannot_decide_and_can_withdraw(
    world: World, change: ChangeRequest, signed_in: SignIn
) -> None:
    client = signed_in(world.member)
    buttons = page(client.get(f"/approvals/{change.pk}")).buttons
    assert "Withdraw" in buttons
    assert "Approve" not in buttons

    decide(client, change, "withdraw")

    change.refresh_from_db()
    assert change.state == ChangeState.WITHDRAWN


def test_polling_of_a_request_stops_when_it_is_final(
    world: World, change: ChangeRequest, signed_in: SignIn
) -> None:
    client = signed_in(world.lead)
    path = f"/approvals/{change.pk}"
    assert client.get(path, **HTMX, HTTP_HX_TARGET="change-head").status_code == 200
    decisions.withdraw(actor=world.member, change_id=change.pk)

    final = client.get(path, **HTMX, HTTP_HX_TARGET="change-head")

    assert final.status_code == 286
    assert not page(final).is_whole_page


def test_the_inbox_needs_as_many_queries_for_many_requests_as_for_two(
    world: World, signed_in: SignIn, django_assert_num_queries: Any
) -> None:
    client = signed_in(world.lead)
    client.get("/approvals")
    for number in range(2):
        requests.request_deploy(actor=world.member, draft=world.draft(f"first{number}"))
    with django_assert_num_queries(INBOX_QUERIES):
        client.get("/approvals")
    for number in range(5):
        requests.request_deploy(actor=world.member, draft=world.draft(f"more{number}"))

    with django_assert_num_queries(INBOX_QUERIES):
        client.get("/approvals")


def test_what_waits_is_counted_as_a_whole_and_shown_by_pages(
    world: World, change: ChangeRequest, signed_in: SignIn
) -> None:
    deployments = copies(
        deployment_of(change), 25, name=lambda n: f"more{n:02}", state=lambda _: "pending"
    )
    copies(change, 25, deployment_id=lambda n: deployments[n - 1].pk)
    client = signed_in(world.lead)

    first, second = (page(client.get(f"/approvals?page={number}")) for number in (1, 2))

    assert "Waiting for you 26" in first.text
    assert "1\N{EN DASH}20 of 26" in first.text
    assert "as more19" in first.text
    assert "as more20" not in first.text
    assert "21\N{EN DASH}26 of 26" in second.text
    assert "as more20" in second.text
    assert "as more25" in second.text
    # The poll of a page asks for that page.
    assert 'hx-get="/approvals?page=2"' in client.get("/approvals?page=2").content.decode()
    assert changes.count_waiting_for(world.lead) == 26


def test_hundreds_that_wait_are_read_in_parts_and_counted_up_to_99(
    world: World, change: ChangeRequest, signed_in: SignIn
) -> None:
    deployments = copies(
        deployment_of(change), 230, name=lambda n: f"more{n:03}", state=lambda _: "pending"
    )
    more = copies(change, 230, deployment_id=lambda n: deployments[n - 1].pk)
    all_ids = [change.pk, *(copy.pk for copy in more)]

    badge = page(signed_in(world.lead).get("/vision/models"))

    assert changes.waiting_for(world.lead) == all_ids
    assert changes.waiting_for(world.lead, most=210) == all_ids[:210]
    assert changes.count_waiting_for(world.lead, most=100) == 100
    assert "Approvals 99+ need your decision" in badge.text


def test_other_open_requests_are_counted_as_a_whole(
    world: World, change: ChangeRequest, signed_in: SignIn
) -> None:
    deployments = copies(
        deployment_of(change), 25, name=lambda n: f"more{n:02}", state=lambda _: "pending"
    )
    copies(change, 25, deployment_id=lambda n: deployments[n - 1].pk)

    shown = page(signed_in(world.member).get("/approvals"))

    assert "Other open requests newest 20 of 26" in shown.text
    assert "as more25" in shown.text
    assert "as more05" not in shown.text
