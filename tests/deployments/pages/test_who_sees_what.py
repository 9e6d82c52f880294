"""Every page of delivery as owner, approver, viewer, platform admin, stranger and anonymous."""

from __future__ import annotations

import pytest
from django.test import Client

from deployments.models import ChangeRequest
from tests.deployments.signed_in import start_canary
from tests.deployments.world import World

ONE = "/vision/deployments/detector"
SEEN_BY_THE_TEAM = [
    ONE,
    f"{ONE}/rollout",
    f"{ONE}/revisions",
    f"{ONE}/manifests",
    f"{ONE}/timeline",
    f"{ONE}/logs",
    f"{ONE}/targets",
    f"{ONE}/try",
    f"{ONE}/cost",
    "/approvals/{change}",
]
FOR_REQUESTERS = [f"{ONE}/canary", f"{ONE}/roll-back", f"{ONE}/retire"]
FOR_ALL = ["/approvals", "/costs"]
PEOPLE = ["member", "lead", "lead2", "viewer", "admin", "stranger", "anonymous"]


def expected(person: str, path: str) -> int:
    if person == "anonymous":
        return 302
    if path in FOR_ALL:
        return 200
    if person == "stranger":
        return 404
    return 403 if person == "viewer" and path in FOR_REQUESTERS else 200


def test_each_page_answers_each_person_as_the_table_of_roles_says(world: World) -> None:
    start_canary(world)
    change = ChangeRequest.objects.get(kind="canary")
    paths = [*FOR_ALL, *SEEN_BY_THE_TEAM, *FOR_REQUESTERS]

    for person in PEOPLE:
        client = Client()
        if person != "anonymous":
            client.force_login(getattr(world, person))
        answers = {path: client.get(path.format(change=change.pk)).status_code for path in paths}
        assert answers == {path: expected(person, path) for path in paths}, person


@pytest.mark.parametrize(
    ("person", "status"), [("viewer", 403), ("member", 200), ("stranger", 404)]
)
def test_a_viewer_is_refused_the_form_of_a_new_deployment(
    world: World, person: str, status: int
) -> None:
    client = Client()
    client.force_login(getattr(world, person))

    assert client.get("/vision/deployments/new").status_code == status


def test_a_stranger_sees_no_row_and_no_choice_of_another_team(world: World) -> None:
    world.serving()
    client = Client()
    client.force_login(world.stranger)

    for path in ("", "/deployments", "/deployments/new", "/models"):
        assert client.get(f"/vision{path}").status_code == 404
    for path in ("", "/deployments", "/deployments/new"):
        assert "detector" not in client.get(f"/nlp{path}").content.decode()


def test_buttons_appear_only_for_people_who_may_press_them(world: World) -> None:
    world.serving()
    texts = {}
    for person in ("member", "viewer"):
        client = Client()
        client.force_login(getattr(world, person))
        texts[person] = client.get(ONE).content.decode()

    assert "Request a canary" in texts["member"]
    assert "Request a canary" not in texts["viewer"]
