"""A session that ended while a form was open: nothing is done, and what was typed comes back."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from deployments.models import ChangeRequest, Deployment
from portal.accounts.models import User
from portal.ui import kept_input
from tests import page as pages
from tests.accounts import events_besides_sign_ins
from tests.deployments.signed_in import HTMX
from tests.deployments.world import World

ONE = "/vision/deployments/detector"
PASSWORD = "a long enough password"
SCALE = {"min_replicas": "2", "max_replicas": "3", "comment": "For <b>Friday</b>."}


@pytest.fixture
def member(world: World) -> User:
    world.serving(environment="staging")
    world.member.set_password(PASSWORD)
    world.member.save()
    return world.member


def sign_in(client: Client, page: str, password: str = PASSWORD) -> Any:
    form = pages.page(page)
    data = {"username": "member", "password": password, "next": form.hidden("next")}
    return client.post("/sign-in", data | {"kept": form.hidden("kept")})


def test_a_poll_without_a_session_gets_401_and_no_form(member: User) -> None:
    answer = Client().get(ONE, **HTMX, HTTP_HX_TARGET="figures")

    assert (answer.status_code, answer.content) == (401, b"")
    assert answer["Cache-Control"] == "no-store"


@pytest.mark.parametrize("method", ["get", "post"])
@pytest.mark.parametrize(
    "path", ["/", "/vision/deployments", "/approvals", "/vision/deployments/new", "/fleet"]
)
def test_no_page_sends_a_sign_in_form_into_another_page(db: None, path: str, method: str) -> None:
    answer = getattr(Client(), method)(path, **HTMX)

    assert answer.status_code in (401, 405)
    assert b"password" not in answer.content


def test_the_form_comes_back_with_what_was_typed_and_nothing_is_sent(member: User) -> None:
    client = Client()
    changes, audited = ChangeRequest.objects.count(), events_besides_sign_ins().count()

    page = client.post(f"{ONE}/scale", SCALE)
    assert page.status_code == 401
    assert "nothing was changed" in page.content.decode()
    signed_in = sign_in(client, page.content.decode())
    assert (signed_in.status_code, signed_in["Location"]) == (302, f"{ONE}/scale")
    form = client.get(f"{ONE}/scale")

    shown = pages.page(form)
    assert form.status_code == 409
    assert "You were signed out before this was sent" in shown.text
    assert shown.field("max_replicas").value == "3"
    assert shown.field("comment").value == "For <b>Friday</b>."
    assert ChangeRequest.objects.count() == changes
    assert events_besides_sign_ins().count() == audited
    again = client.post(f"{ONE}/scale", SCALE)
    assert again.status_code == 302
    assert ChangeRequest.objects.filter(kind="scale").count() == 1


def test_a_wrong_password_keeps_it_too(member: User) -> None:
    client = Client()
    page = client.post(f"{ONE}/scale", SCALE).content.decode()

    refused = sign_in(client, page, password="wrong")

    assert sign_in(client, refused.content.decode())["Location"] == f"{ONE}/scale"
    assert pages.page(client.get(f"{ONE}/scale")).field("max_replicas").value == "3"


def test_it_is_shown_once_and_another_page_forgets_it(member: User) -> None:
    client = Client()
    page = client.post(f"{ONE}/scale", SCALE).content.decode()
    sign_in(client, page)

    client.get("/vision/deployments")

    assert client.get(f"{ONE}/scale").status_code == 200


def test_stopping_is_never_done_by_signing_in(member: User) -> None:
    client = Client()
    page = client.post(f"{ONE}/stop", {"comment": "too hot"}).content.decode()
    sign_in(client, page)

    form = client.get(f"{ONE}/stop")

    assert "too hot" in form.content.decode()
    assert not Deployment.objects.get().is_stopped


def test_a_new_deployment_comes_back_with_what_was_typed(world: World, member: User) -> None:
    client = Client()
    data = {"go": "submit", "name": "other", "comment": "please"}
    page = client.post("/vision/deployments/new", data).content.decode()
    sign_in(client, page)

    form = client.get("/vision/deployments/new")

    assert pages.page(form).field("name").value == "other"
    assert pages.page(form).field("comment").value == "please"
    assert Deployment.objects.count() == 1


def test_a_button_without_a_page_of_its_own_leads_back_to_where_it_was(member: User) -> None:
    at = f"{ONE}/manifests"

    answer = Client().post(
        f"{ONE}/drift", {"choice": "take"}, headers={"Referer": f"http://testserver{at}"}
    )

    assert (answer.status_code, answer["Location"]) == (302, f"/sign-in?next={at}")
    elsewhere = Client().post(f"{ONE}/drift", headers={"Referer": "http://evil.example/x"})
    assert elsewhere["Location"] == "/sign-in?next=/"


def test_invented_input_is_not_shown(member: User) -> None:
    client = Client()
    data = {"username": "member", "password": PASSWORD, "next": f"{ONE}/scale", "kept": "e30:x:y"}

    client.post("/sign-in", data)

    assert client.get(f"{ONE}/scale").status_code == 200


def test_too_much_input_is_not_carried(member: User) -> None:
    long = {**SCALE, "comment": "x" * kept_input.MAX_LENGTH}

    answer = Client().post(f"{ONE}/scale", long, headers={"Referer": f"http://testserver{ONE}"})

    assert (answer.status_code, answer["Location"]) == (302, f"/sign-in?next={ONE}")


def test_the_page_can_query_who_is_signed_in(world: World) -> None:
    signed_out = Client().get("/session")
    client = Client()
    client.force_login(world.member)
    signed_in = client.get("/session")

    assert (signed_out.status_code, signed_out.json()) == (401, {"user": None})
    assert signed_in.json()["user"] == "member"
    assert len(signed_in.json()["csrf_token"]) == 64
    assert signed_in["Cache-Control"] == "no-store"
