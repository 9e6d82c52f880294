"""Presets of the platform and of teams: saved from the form, chosen with one control, refused like any other value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from deployments.changes.services import presets
from deployments.models import ChangeRequest, DeploymentPreset
from portal.accounts.models import Team, User
from portal.audit.models import AuditEvent
from tests.deployments.changes.test_new_deployment import URL, check, fields_of, send
from tests.deployments.signed_in import HTMX
from tests.deployments.world import World
from tests.page import page

API = "/api/v1/teams/vision/deployment-presets"
PAGE = "/admin/teams/vision/deployment-presets"
SIDE = {**HTMX, "HTTP_HX_TARGET": "side"}
BIG = {"memory": "12Gi", "min_replicas": 2, "max_replicas": 2, "network": {"access": "open"}}
SignIn = Callable[[User], Client]


@pytest.fixture
def client(world: World, signed_in: SignIn) -> Client:
    return signed_in(world.member)


@pytest.fixture
def big(world: World) -> DeploymentPreset:
    return presets.save(actor=world.lead, team=world.team, name="Big", settings=BIG)


def api(user: User) -> APIClient:
    client = APIClient()
    client.force_authenticate(user)
    return client


def open_form(client: Client, world: World) -> Any:
    return client.get(f"{URL}?version={world.version1.pk}")


def test_a_lead_saves_the_settings_of_the_form_and_nothing_of_its_version(
    world: World, signed_in: SignIn
) -> None:
    client = signed_in(world.lead)

    answer = client.post(
        URL,
        {
            **fields_of(open_form(client, world)),
            "go": "keep",
            "keep_as": " Careful ",
            "name": "street",
            "memory": "9Gi",
            "env": "APP_KEY=hunter2",
            "placement_capacity": "spot",
        },
    )

    assert "“Careful” is saved as a preset of vision." in page(answer).text
    assert fields_of(answer)["name"] == "street"
    kept = DeploymentPreset.objects.get()
    assert (kept.team, kept.name, kept.saved_by) == (world.team, "Careful", world.lead)
    assert kept.settings == {"memory": "9Gi", "placement": {"capacity": "spot"}}
    event = AuditEvent.objects.get(action="deployment_preset.saved")
    assert (event.team_slug, event.object_label) == ("vision", "vision: Careful")
    assert event.after == {"settings": kept.settings}


def test_the_settings_of_a_deployment_become_a_preset(world: World, signed_in: SignIn) -> None:
    world.serving(memory="9Gi")
    client = signed_in(world.lead)
    form = client.get(f"{URL}?from=detector")
    assert fields_of(form)["start"] == "deployment-detector"

    client.post(URL, {**fields_of(form), "go": "keep", "keep_as": "Like detector"})

    settings = DeploymentPreset.objects.get().settings
    assert (settings["memory"], settings["instance_type"]) == ("9Gi", "g5.xlarge")
    assert settings["network"] == {"access": "open"}


def test_a_preset_fills_the_form_and_keeps_what_was_typed(
    world: World, client: Client, big: DeploymentPreset
) -> None:
    form = check(client, open_form(client, world), cpu="3", name="street")

    filled = check(client, form, start=f"preset-{big.pk}")

    sent = fields_of(filled)
    names = ("name", "cpu", "memory", "min_replicas", "network_access", "started")
    assert [sent[name] for name in names] == [
        *("street", "3", "12Gi", "2", "open"),
        f"preset-{big.pk}",
    ]
    assert "Start from “Big”" in page(filled).text
    back = fields_of(check(client, filled, start="", max_replicas="3"))
    assert (back["memory"], back["min_replicas"], back["max_replicas"]) == ("8Gi", "1", "3")


def test_a_preset_fills_the_open_page_by_one_request(
    world: World, client: Client, big: DeploymentPreset
) -> None:
    fields = fields_of(open_form(client, world))

    answer = client.post(URL, {**fields, "start": f"preset-{big.pk}"}, **SIDE)

    parts = page(answer)
    assert parts.hidden("started") == f"preset-{big.pk}"
    assert parts.field("memory").value == "12Gi"
    assert parts.field("network_access").value == "open"


def test_a_page_without_a_start_gets_no_part_of_one(world: World, client: Client) -> None:
    form = open_form(client, world)
    assert not page(form).fields("start")

    answer = client.post(URL, {**fields_of(form), "memory": "9Gi"}, **SIDE)

    assert "start-label" not in answer.content.decode()


def test_what_was_only_just_filled_in_is_shown_before_it_is_sent(
    world: World, client: Client, big: DeploymentPreset
) -> None:
    filled = send(client, open_form(client, world), start=f"preset-{big.pk}", name="street")
    assert not ChangeRequest.objects.exists()

    send(client, filled)

    revision = ChangeRequest.objects.get().revision
    assert revision is not None
    assert revision.spec["memory"] == "12Gi"


def test_a_preset_that_no_longer_fits_is_refused_at_its_field(world: World, client: Client) -> None:
    gone = {"instance_type": "p5.48xlarge", "gpus": 8}
    preset = presets.save(actor=world.lead, team=world.team, name="Huge", settings=gone)

    form = client.get(f"{URL}?version={world.version1.pk}&preset={preset.pk}")
    answer = send(client, form, network_access="open")

    refusal = "The chosen GPU is no longer offered in this way."
    assert refusal in page(form).text
    assert answer.status_code == 422
    assert refusal in page(answer).text
    assert not ChangeRequest.objects.exists()


def test_a_preset_that_was_deleted_fills_in_nothing(
    world: World, client: Client, big: DeploymentPreset
) -> None:
    form = open_form(client, world)
    value = f"preset-{big.pk}"
    presets.remove(actor=world.lead, team=world.team, preset_id=big.pk)

    answer = check(client, form, start=value)

    assert fields_of(answer)["memory"] == "8Gi"
    assert "This no longer exists. Nothing was filled in" in page(answer).text


def test_a_member_saves_none_and_a_lead_none_for_all_teams(
    world: World, client: Client, signed_in: SignIn
) -> None:
    form = open_form(client, world)
    assert not page(form).fields("keep_as")
    keep = {"go": "keep", "keep_as": "Mine"}
    assert client.post(URL, {**fields_of(form), **keep}).status_code == 403
    lead = signed_in(world.lead)
    form = open_form(lead, world)
    assert page(form).fields("keep_as")
    assert not page(form).fields("keep_for_all")

    answer = lead.post(URL, {**fields_of(form), **keep, "memory": "9Gi", "keep_for_all": "on"})

    assert answer.status_code == 403
    assert not DeploymentPreset.objects.exists()


def test_the_platforms_preset_is_offered_to_every_team_and_stays_where_a_lead_deletes(
    world: World, client: Client, signed_in: SignIn
) -> None:
    admin = signed_in(world.admin)
    keep = {"go": "keep", "keep_as": "House", "keep_for_all": "on", "memory": "9Gi"}
    admin.post(URL, {**fields_of(open_form(admin, world)), **keep})
    house = DeploymentPreset.objects.get()
    assert house.team is None

    offered = page(open_form(client, world)).field("start")
    assert "House" in [option.text for option in offered.all("option")]
    listed = page(signed_in(world.lead).get(PAGE))
    assert "Memory 9Gi" in listed.part(f"preset-{house.pk}").text
    assert "Delete House" not in listed.buttons
    assert signed_in(world.lead).post(f"{PAGE}/{house.pk}/remove").status_code == 403
    assert DeploymentPreset.objects.exists()

    admin.post(f"{PAGE}/{house.pk}/remove")

    assert not DeploymentPreset.objects.exists()
    event = AuditEvent.objects.get(action="deployment_preset.removed")
    assert (event.team_slug, event.object_label) == ("", "all teams: House")


def test_rest_saves_lists_and_deletes(world: World) -> None:
    lead = api(world.lead)
    assert (
        api(world.member).post(API, {"name": "x", "settings": BIG}, format="json").status_code
        == 403
    )
    made = lead.post(API, {"name": "Big", "settings": BIG}, format="json").json()
    assert (
        lead.post(
            "/api/v1/deployment-presets", {"name": "x", "settings": BIG}, format="json"
        ).status_code
        == 403
    )
    api(world.admin).post(
        "/api/v1/deployment-presets",
        {"name": "House", "settings": {"memory": "9Gi"}},
        format="json",
    )

    listed = api(world.member).get(API).json()

    assert [(row["team"], row["name"], row["settings"]) for row in listed] == [
        (None, "House", {"memory": "9Gi"}),
        ("vision", "Big", BIG),
    ]
    assert api(world.member).delete(f"{API}/{made['id']}").status_code == 403
    assert lead.delete(f"{API}/{made['id']}").status_code == 204
    assert [
        row["name"] for row in api(world.stranger).get("/api/v1/deployment-presets").json()
    ] == ["House"]
    assert api(world.stranger).get(API).status_code == 404


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"memory": "lots"}, "settings.memory"),
        ({"env": {"APP_KEY": "x"}}, "settings.env"),
        ({"scaling": {"sqs": {"queue_url": "x"}}}, "settings.scaling.sqs"),
        ({"colour": "red"}, "settings.colour"),
        ({}, "settings.settings"),
    ],
)
def test_settings_that_no_preset_can_have_are_refused(
    world: World, given: dict[str, Any], field: str
) -> None:
    answer = api(world.lead).post(API, {"name": "x", "settings": given}, format="json")

    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == [field]
    assert not DeploymentPreset.objects.exists()


def test_a_request_by_rest_takes_from_a_preset_what_its_spec_leaves_out(
    world: World, big: DeploymentPreset
) -> None:
    body = {
        "version_id": world.version1.pk,
        "cluster_id": world.cluster_id,
        "name": "street",
        "preset_id": big.pk,
        "spec": {"engine": "kserve-triton", "instance_type": "g5.xlarge", "memory": "9Gi"},
    }

    answer = api(world.member).post("/api/v1/deployments", body, format="json")

    assert answer.status_code == 201, answer.json()
    spec = answer.json()["revision"]["spec"]
    assert (spec["memory"], spec["min_replicas"], spec["network"]["access"]) == ("9Gi", 2, "open")


def test_a_preset_of_another_team_is_not_found(world: World, big: DeploymentPreset) -> None:
    DeploymentPreset.objects.filter(pk=big.pk).update(team=Team.objects.get(slug="nlp"))
    body = {
        "version_id": world.version1.pk,
        "cluster_id": world.cluster_id,
        "name": "street",
        "preset_id": big.pk,
        "spec": {},
    }

    answer = api(world.member).post("/api/v1/deployments/preflight", body, format="json")

    assert answer.status_code == 404
