"""The version of a new deployment, of a team that has more of them than a page shows."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from deployments.models import ChangeRequest, Model, ModelVersion
from deployments.states import VersionState
from portal.accounts.models import User
from tests import page as pages
from tests.accounts import make_membership, make_team
from tests.deployments.changes.test_new_deployment import URL, check, fields_of
from tests.deployments.signed_in import HTMX
from tests.deployments.world import World

SHOWN = 20
_LABEL = re.compile(r'<option value="\d+"[^>]*>([a-z0-9-]+:\d+)(?: ·|<)')
_OPTION = re.compile(r'<option value="([^"]+)"></option>')
# The frame of the page, its versions with their aliases, and what a cluster has.
QUERIES = 22


@pytest.fixture
def client(world: World, signed_in: Callable[[User], Client]) -> Client:
    return signed_in(world.member)


def add_versions(world: World, name: str, count: int, **changed: Any) -> list[ModelVersion]:
    values = {"team": world.team, **{k: v for k, v in changed.items() if k == "team"}}
    model = Model.objects.create(
        name=name,
        created_by=world.member,
        created_at=world.clock.at,
        changed_at=world.clock.at,
        **values,
    )
    facts = {"state": VersionState.READY, "filename": "m.onnx", "declared_size_bytes": 1}
    facts |= {name: value for name, value in changed.items() if name != "team"}
    return ModelVersion.objects.bulk_create(
        ModelVersion(
            model=model,
            number=number,
            upload_prefix=f"{values['team'].slug}/{name}/{number}/",
            created_by=world.member,
            created_at=world.clock.at,
            **facts,
        )
        for number in range(1, count + 1)
    )


def shown(answer: Any) -> list[str]:
    return _LABEL.findall(answer.content.decode())


def search(client: Client, target: str, **params: Any) -> Any:
    return client.get(URL, params, **HTMX, HTTP_HX_TARGET=target)


def test_the_newest_versions_are_shown_and_the_search_finds_the_others(
    world: World, client: Client
) -> None:
    add_versions(world, "many", 60)

    page = client.get(URL)
    found = search(client, "versions", q="detector:1")

    assert shown(page) == [f"many:{number}" for number in range(60, 60 - SHOWN, -1)]
    total = ModelVersion.objects.filter(state=VersionState.READY).count()
    search_line = next(pages.page(page).group("Find another version").all("summary")).text
    assert search_line == (f"Find another version: {total} are ready, the newest 20 are listed")
    assert shown(found) == ["detector:1"]
    assert "detector:1" in pages.page(found).part("versions").text
    assert not pages.page(found).is_whole_page
    assert "No results for “nothing”" in search(client, "versions", q="nothing").content.decode()


def test_the_chosen_version_stays_in_the_list_and_chosen(world: World, client: Client) -> None:
    add_versions(world, "many", 60)
    chosen = world.version1

    found = search(client, "versions", q="many:7", version=str(chosen.pk))

    assert shown(found) == [chosen.label, "many:7"]
    assert pages.page(found).field("version").value == str(chosen.pk)


def test_enter_in_the_search_field_searches_and_keeps_what_was_typed(
    world: World, client: Client
) -> None:
    add_versions(world, "many", 60)
    page = client.get(f"{URL}?version={world.version1.pk}")
    page = check(client, page, name="street")

    page = client.post(URL, {**fields_of(page), "go": "submit", "q": "many:7"})

    assert page.status_code == 200
    assert shown(page) == [world.version1.label, "many:7"]
    assert fields_of(page)["name"] == "street"
    assert fields_of(page)["version"] == str(world.version1.pk)
    assert not ChangeRequest.objects.exists()


def test_nothing_that_the_team_may_not_deploy_is_found(world: World, client: Client) -> None:
    other = make_team(slug="other")
    make_membership(user=world.member, team=other)
    [foreign] = add_versions(world, "foreign", 1, team=other)
    client.get(f"{URL}?team={world.team.slug}")
    [bad] = add_versions(world, "bad", 1, state=VersionState.QUARANTINED)

    for version in (foreign, bad):
        assert shown(search(client, "versions", q=version.label, version=str(version.pk))) == []
        page = client.get(f"{URL}?version={version.pk}")
        assert fields_of(page)["version"] == ""
        assert version.label not in shown(page)


@pytest.mark.parametrize("hostile", ["x", "-1", "9" * 30, "٣", "1 OR 1=1"])
def test_a_version_that_is_no_number_is_none(client: Client, hostile: str) -> None:
    assert client.get(URL, {"version": hostile}).status_code == 200
    assert search(client, "versions", q=hostile, version=hostile).status_code == 200
    assert search(client, "addable", additional_model_1=hostile, version=hostile).status_code == 200


def test_additional_models_are_suggested_as_they_are_typed(world: World, client: Client) -> None:
    add_versions(world, "classifier", 30)
    add_versions(world, "weights", 1, source_uri="hf://a/b", filename="")
    own = str(world.version1.pk)

    def suggested(text: str) -> list[str]:
        answer = search(client, "addable", additional_model_2=text, version=own)
        return _OPTION.findall(answer.content.decode())

    assert suggested("class") == [f"classifier:{n}" for n in range(30, 30 - SHOWN, -1)]
    assert suggested("classifier:3") == ["classifier:3"]
    assert suggested("detector") == []
    assert suggested("weights") == []


def test_an_additional_model_is_kept_or_refused_by_its_name(world: World, client: Client) -> None:
    add_versions(world, "classifier", 30)
    page = client.get(f"{URL}?version={world.version1.pk}")
    page = check(client, page, name="street")

    kept = check(client, page, additional_model_1="classifier:4")
    refused = check(client, page, additional_model_1="nothing:4")

    assert fields_of(kept)["additional_model_1"] == "classifier:4"
    assert pages.page(refused).group("Multi-model serving").is_open
    assert fields_of(refused)["additional_model_1"] == "nothing:4"
    assert "Select a valid choice. nothing:4" in refused.content.decode()


def test_the_form_needs_as_many_queries_and_bytes_for_many_versions(
    world: World, client: Client, django_assert_num_queries: Any
) -> None:
    add_versions(world, "many", 30)
    client.get(URL)
    with django_assert_num_queries(QUERIES):
        few = client.get(URL)
    add_versions(world, "more", 400)

    with django_assert_num_queries(QUERIES):
        many = client.get(URL)

    assert abs(len(many.content) - len(few.content)) < 500
