"""Comments on a request: by everyone who sees it, told to those who take part."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from deployments.changes.services import comments, decisions, requests
from deployments.models import ChangeRequest, RequestComment
from portal.accounts.models import User
from portal.audit.models import AuditEvent
from portal.core.errors import Conflict, Invalid, NotFound
from portal.notifications import vault
from portal.notifications.models import Channel, Delivery, Notice
from tests.deployments.changes.test_api import client as api
from tests.deployments.world import World
from tests.page import Part, page

SignIn = Callable[[User], Client]


@pytest.fixture
def change(world: World) -> ChangeRequest:
    return requests.request_deploy(actor=world.member, draft=world.draft("street"))


def add_channel(user: User) -> None:
    Channel.objects.create(
        user=user,
        name="mine",
        kind="email",
        sealed_address=vault.seal(f"{user.username}@example.org"),
        hint=f"{user.username}@example.org",
        created_by=user,
        created_at=user.date_joined,
    )


def recipients() -> set[tuple[int, str]]:
    """Notice and person of each delivery."""
    rows = Delivery.objects.filter(notice__event="change.commented")
    return set(rows.values_list("notice_id", "channel__user__username"))


def why(client: Client, change: ChangeRequest) -> Part:
    return page(client.get(f"/approvals/{change.pk}")).part("why")


def test_comments_are_listed_oldest_first_and_escaped(
    world: World, signed_in: SignIn, change: ChangeRequest
) -> None:
    viewer = signed_in(world.viewer)
    answer = viewer.post(
        f"/approvals/{change.pk}", {"decision": "comment", "comment": "Why <b>two</b> GPUs?"}
    )
    assert answer["Location"] == f"/approvals/{change.pk}"
    comments.add(actor=world.member, change_id=change.pk, text="One is for tests.")

    shown = [line.text for line in why(viewer, change).part("comments").all("li")]

    assert [line.partition(" ")[0] for line in shown] == ["viewer", "member"]
    assert shown[0].endswith("Why <b>two</b> GPUs?")
    assert shown[1].endswith("One is for tests.")


def test_a_comment_is_told_to_the_requester_and_to_those_who_commented(
    world: World, change: ChangeRequest
) -> None:
    for user in (world.member, world.lead, world.viewer, world.lead2):
        add_channel(user)

    comments.add(actor=world.lead, change_id=change.pk, text="Which traffic?")
    comments.add(actor=world.viewer, change_id=change.pk, text="Ten a second.")
    comments.add(actor=world.member, change_id=change.pk, text="Twenty at noon.")

    first, second, third = Notice.objects.filter(event="change.commented").order_by("id")
    assert recipients() == {
        (first.pk, "member"),
        (second.pk, "member"),
        (second.pk, "lead"),
        (third.pk, "lead"),
        (third.pk, "viewer"),
    }
    assert first.message == "lead wrote: Which traffic?"
    assert first.path == f"/approvals/{change.pk}"


def test_a_comment_is_not_told_to_who_has_left_the_team(
    world: World, change: ChangeRequest
) -> None:
    for user in (world.member, world.viewer):
        add_channel(user)
    comments.add(actor=world.viewer, change_id=change.pk, text="Ten a second.")
    world.viewer.memberships.all().delete()
    Delivery.objects.all().delete()

    comments.add(actor=world.lead, change_id=change.pk, text="Which traffic?")

    assert {name for _, name in recipients()} == {"member"}


def test_a_comment_is_audited_and_changes_nothing(world: World, change: ChangeRequest) -> None:
    evidence = change.evidence_hash

    comments.add(actor=world.viewer, change_id=change.pk, text="  Fine by me.  ")

    event = AuditEvent.objects.get(action="change.commented")
    assert (event.actor_name, event.object_id, event.reason) == (
        "viewer",
        str(change.pk),
        "Fine by me.",
    )
    change.refresh_from_db()
    assert (change.state, change.evidence_hash) == ("submitted", evidence)
    decisions.reject(actor=world.lead, change_id=change.pk, comment="later")
    comments.add(actor=world.member, change_id=change.pk, text="When?")
    assert RequestComment.objects.count() == 2


@pytest.mark.parametrize("text", ["", "   ", "x" * 2001])
def test_empty_and_long_comments_are_refused(
    world: World, change: ChangeRequest, text: str
) -> None:
    with pytest.raises(Invalid) as refused:
        comments.add(actor=world.viewer, change_id=change.pk, text=text)

    assert list(refused.value.fields) == ["text"]
    assert RequestComment.objects.count() == 0


def test_a_refused_comment_stays_in_its_form(
    world: World, signed_in: SignIn, change: ChangeRequest
) -> None:
    answer = signed_in(world.viewer).post(
        f"/approvals/{change.pk}", {"decision": "comment", "comment": "  "}
    )

    assert answer.status_code == 422
    assert "Write a comment first." in page(answer).part("add-comment").text


def test_a_stranger_does_not_comment(world: World, change: ChangeRequest) -> None:
    with pytest.raises(NotFound):
        comments.add(actor=world.stranger, change_id=change.pk, text="hello")

    assert RequestComment.objects.count() == 0


def test_a_request_takes_so_many_comments(
    world: World, change: ChangeRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comments, "MOST_COMMENTS", 1)
    comments.add(actor=world.viewer, change_id=change.pk, text="first")

    with pytest.raises(Conflict) as refused:
        comments.add(actor=world.viewer, change_id=change.pk, text="second")

    assert refused.value.code == "too_many_comments"
    assert RequestComment.objects.count() == 1


def test_comments_by_rest(world: World, change: ChangeRequest) -> None:
    path = f"/api/v1/changes/{change.pk}/comments"
    for user, text in ((world.viewer, "first"), (world.lead, "second")):
        made = api(user).post(path, {"text": text}, format="json")
        assert made.status_code == 201, made.data

    listed = api(world.member).get(path).data["results"]

    assert [(row["author"], row["text"]) for row in listed] == [
        ("viewer", "first"),
        ("lead", "second"),
    ]
    assert api(world.viewer).post(path, {"text": " "}, format="json").status_code == 422
    assert api(world.stranger).get(path).status_code == 404


def test_the_page_says_who_was_asked_and_when(world: World, signed_in: SignIn) -> None:
    alone = requests.request_deploy(actor=world.member, draft=world.draft("yard"))
    client = signed_in(world.member)
    assert "Nobody was notified: no channel" in why(client, alone).text
    add_channel(world.lead)

    asked = requests.request_deploy(actor=world.member, draft=world.draft("street"))

    assert "Notified: lead (E-mail)" in why(client, asked).text
