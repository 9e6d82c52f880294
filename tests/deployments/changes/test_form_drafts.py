"""Drafts of the form of a new deployment: kept with each change, for their author only, until they are sent."""

from __future__ import annotations

import html
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from deployments.changes.services import form_drafts, requests
from deployments.models import ChangeRequest, FormDraft
from deployments.states import VersionState
from portal.accounts.models import Membership, Role, User
from portal.core import clock
from tests.deployments.changes.test_new_deployment import URL, fields_of, send
from tests.deployments.signed_in import HTMX
from tests.deployments.world import World
from tests.page import page

LIST = "/vision/deployments"
SIDE = {**HTMX, "HTTP_HX_TARGET": "side"}
SignIn = Callable[[User], Client]


@pytest.fixture
def client(world: World, signed_in: SignIn) -> Client:
    return signed_in(world.member)


def type_into(client: Client, form: Any, **typed: str) -> str:
    """Change fields of an opened form, as htmx posts them. Returns the draft's key."""
    fields = fields_of(form)
    answer = client.post(URL, {**fields, **typed}, **SIDE)
    assert answer.status_code == 200
    return fields["draft"]


def open_form(client: Client, world: World) -> Any:
    return client.get(f"{URL}?version={world.version1.pk}")


def test_what_was_typed_is_continued_on_another_computer(
    world: World, client: Client, signed_in: SignIn
) -> None:
    key = type_into(client, open_form(client, world), name="street", memory="9Gi", comment="soon")

    elsewhere = signed_in(world.member)
    listed, opened = page(elsewhere.get(LIST)), page(elsewhere.get(URL))
    assert [row["Deployment"] for row in listed.part("form-drafts").rows] == ["street"]
    assert [row["Version"] for row in opened.part("form-drafts").rows] == ["detector:1"]
    [(name, address)] = opened.part("form-drafts").links.items()
    assert name.startswith("Continue the draft of ")
    assert address == f"{URL}?draft={key}"

    continued = elsewhere.get(address)

    sent = fields_of(continued)
    assert {name: sent[name] for name in ("draft", "version", "name", "memory", "comment")} == {
        "draft": key,
        "version": str(world.version1.pk),
        "name": "street",
        "memory": "9Gi",
        "comment": "soon",
    }
    # What was chosen for the version still is.
    assert sent["suggested_share"] == sent["share"] == "g5.xlarge|nvidia.com/gpu|1"
    assert page(continued).links["Start anew"] == URL


def test_two_tabs_have_two_drafts(world: World, client: Client) -> None:
    first, second = open_form(client, world), open_form(client, world)
    type_into(client, first, name="street")
    type_into(client, second, name="harbour")

    type_into(client, first, name="street", memory="9Gi")

    assert sorted(FormDraft.objects.values_list("fields__name", "fields__memory")) == [
        ("harbour", None),
        ("street", "9Gi"),
    ]


def test_a_form_that_nobody_changed_is_no_draft(world: World, client: Client) -> None:
    type_into(client, client.get(URL))

    assert not FormDraft.objects.exists()
    assert "unsent" not in page(client.get(LIST)).text


def test_a_sent_request_leaves_no_draft_and_a_late_save_brings_none_back(
    world: World, client: Client
) -> None:
    form = open_form(client, world)
    type_into(client, form, name="street")
    send(client, form, name="street", network_access="open")

    type_into(client, form, name="street", memory="9Gi")

    assert ChangeRequest.objects.count() == 1
    assert "unsent" not in page(client.get(LIST)).text
    assert list(FormDraft.objects.values_list("fields", flat=True)) == [{}]


def test_a_refused_request_keeps_its_draft(world: World, client: Client) -> None:
    send(client, open_form(client, world), name="street", min_replicas="9", max_replicas="9")

    assert not ChangeRequest.objects.exists()
    assert FormDraft.objects.get().fields["min_replicas"] == "9"


def test_a_draft_is_deleted_by_its_author_alone(
    world: World, client: Client, signed_in: SignIn
) -> None:
    key = type_into(client, open_form(client, world), name="street")
    other = signed_in(world.lead)

    assert "unsent" not in page(other.get(LIST)).text
    assert "unsent" not in page(other.get(URL)).text
    assert other.get(f"{URL}?draft={key}").status_code == 404
    other.post(f"{LIST}/drafts/{key}/delete")
    assert FormDraft.objects.get().user == world.member

    answer = client.post(f"{LIST}/drafts/{key}/delete", {"back": "form"})

    assert answer["Location"] == URL
    assert not FormDraft.objects.exists()
    assert client.get(f"{URL}?draft={key}").status_code == 404


def test_another_person_with_the_same_key_writes_a_draft_of_their_own(
    world: World, client: Client, signed_in: SignIn
) -> None:
    key = type_into(client, open_form(client, world), name="street")
    form = open_form(signed_in(world.lead), world)
    signed_in(world.lead).post(URL, {**fields_of(form), "draft": key, "name": "mine"}, **SIDE)

    rows = FormDraft.objects.order_by("pk").values_list("user__username", "fields__name")
    assert list(rows) == [(world.member.username, "street"), (world.lead.username, "mine")]


def test_a_viewer_saves_no_draft(world: World, client: Client) -> None:
    form = open_form(client, world)
    Membership.objects.filter(user=world.member).update(role=Role.VIEWER)

    answer = client.post(URL, {**fields_of(form), "name": "street"}, **SIDE)

    assert answer.status_code == 403
    assert not FormDraft.objects.exists()


def test_what_may_hold_a_secret_is_not_stored_and_the_form_says_so(
    world: World, client: Client
) -> None:
    key = type_into(
        client,
        open_form(client, world),
        name="street",
        env="APP_KEY=hunter2",
        scaling_kind="keda",
        scaling_redis="on",
        scaling_redis_address=":hunter2@cache:6379",
        triton_parameters="token=hunter2",
        comment="ask ana@example.org",
    )

    draft = FormDraft.objects.get()
    assert "hunter2" not in str(draft.fields)
    assert draft.fields["comment"] == "ask ana@example.org"
    text = page(client.get(f"{URL}?draft={key}")).text
    assert text.count("Not kept, as it may hold a secret: ") == 1
    assert sorted(draft.left_out) == ["env", "scaling_redis_address", "triton_parameters"]
    assert "Environment variables. " in text.partition("Not kept")[2]


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (VersionState.QUARANTINED, "detector:1 is quarantined. Choose another version."),
        (None, "detector:1 was deleted. Choose another version."),
    ],
)
def test_a_draft_says_that_its_version_is_gone(
    world: World, client: Client, state: VersionState | None, message: str
) -> None:
    key = type_into(client, open_form(client, world), name="street")
    if state is None:
        world.version1.delete()
    else:
        world.version1.state = state
        world.version1.save()

    assert message in page(client.get(LIST)).part("form-drafts").text
    continued = client.get(f"{URL}?draft={key}")
    assert message in page(continued).text
    assert fields_of(continued)["name"] == "street"


def test_a_person_has_five_drafts_and_the_oldest_goes(world: World, client: Client) -> None:
    for number in range(form_drafts.MOST + 1):
        type_into(client, open_form(client, world), name=f"street-{number}")

    assert [row["Deployment"] for row in page(client.get(LIST)).part("form-drafts").rows] == [
        f"street-{number}" for number in (5, 4, 3, 2, 1)
    ]


def test_an_old_draft_is_swept(world: World, client: Client) -> None:
    for name, days in (("street", 15), ("harbour", 13)):
        key = type_into(client, open_form(client, world), name=name)
        at = clock.now() - timedelta(days=days)
        FormDraft.objects.filter(key=key).update(changed_at=at)

    assert form_drafts.sweep() == 1

    assert [draft.fields["name"] for draft in FormDraft.objects.all()] == ["harbour"]


def test_a_draft_of_a_resubmission_still_replaces_its_request(world: World, client: Client) -> None:
    asked = requests.request_deploy(actor=world.member, draft=world.draft("street"))
    key = type_into(client, client.get(f"{URL}?replaces={asked.pk}"), memory="9Gi")

    send(client, client.get(f"{URL}?draft={key}"))

    assert ChangeRequest.objects.exclude(pk=asked.pk).get().replaces_id == asked.pk


def test_the_text_of_the_request_is_kept_too(world: World, client: Client) -> None:
    form = open_form(client, world)
    as_yaml = client.post(URL, {**fields_of(form), "view": "yaml"})
    fields = fields_of(as_yaml)
    assert fields["draft"] == fields_of(form)["draft"]

    client.post(
        URL, {**fields, "yaml": html.unescape(fields["yaml"]).replace("8Gi", "9Gi")}, **SIDE
    )

    assert FormDraft.objects.get().fields["memory"] == "9Gi"


def test_the_list_reads_no_row_for_each_draft(world: World, client: Client) -> None:
    type_into(client, open_form(client, world), name="street-0")
    client.get(LIST)
    with CaptureQueriesContext(connection) as one:
        client.get(LIST)
    few = len(one.captured_queries)
    for number in range(1, form_drafts.MOST):
        type_into(client, open_form(client, world), name=f"street-{number}")

    with CaptureQueriesContext(connection) as five:
        client.get(LIST)

    assert len(five.captured_queries) == few > 0
