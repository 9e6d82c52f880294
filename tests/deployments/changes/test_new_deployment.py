"""The form of a new deployment, as a browser without JavaScript sends it, and the htmx side card."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from django.test import Client

from deployments.changes.web import draft_yaml
from deployments.models import ChangeRequest, Deployment, ModelVersion
from deployments.sizing.domain.onnx import VramEstimate
from deployments.states import ChangeState
from portal.accounts.models import User
from portal.audit.models import AuditEvent
from tests import page as pages
from tests.deployments.signed_in import HTMX
from tests.deployments.world import World

URL = "/vision/deployments/new"
_INPUT = re.compile(r"<input[^>]*>")
_TEXTAREA = re.compile(r'<textarea[^>]*name="([^"]+)"[^>]*>\s*([^<]*)</textarea>')
_SELECT = re.compile(r'<select[^>]*name="([^"]+)"[^>]*>(.*?)</select>', re.DOTALL)


@pytest.fixture
def client(world: World, signed_in: Callable[[User], Client]) -> Client:
    return signed_in(world.member)


def fields_of(page: Any) -> dict[str, str]:
    """What a browser would send back from the form as it stands."""
    form = page.content.decode().split('id="new-deployment"')[1].split("</form>")[0]
    fields: dict[str, str] = {}
    for tag in _INPUT.findall(form):
        attrs = dict(re.findall(r'(\w+)="([^"]*)"', tag))
        is_choice = attrs.get("type") in ("radio", "checkbox")
        if "name" in attrs and (not is_choice or " checked" in tag):
            fields[attrs["name"]] = attrs.get("value", "")
    fields |= {name: text.strip() for name, text in _TEXTAREA.findall(form)}
    for name, options in _SELECT.findall(form):
        chosen = re.search(r'value="([^"]*)"[^>]*selected', options)
        fields[name] = chosen.group(1) if chosen else ""
    return fields


def check(client: Client, page: Any, **typed: str) -> Any:
    """Press Enter in a field."""
    return client.post(URL, {**fields_of(page), "go": "check", **typed})


def send(client: Client, page: Any, **typed: str) -> Any:
    """Press the button."""
    return client.post(URL, {**fields_of(page), "go": "submit", **typed})


def test_a_checked_page_without_javascript_ends_in_a_request(world: World, client: Client) -> None:
    page = check(client, client.get(URL), version=str(world.version1.pk))
    assert fields_of(page)["name"] == "detector"
    assert fields_of(page)["share"] == "g5.xlarge|nvidia.com/gpu|1"
    page = check(
        client, page, name="street", network_access="open", min_replicas="2", max_replicas="3"
    )
    text = page.content.decode()
    assert "street is available." in text
    assert "kind: InferenceService" in text
    answer = send(client, page, comment="For the demo on Friday.")

    change = ChangeRequest.objects.get()
    assert answer.status_code == 302
    assert answer["Location"] == f"/approvals/{change.pk}"
    assert (change.state, change.comment) == (ChangeState.SUBMITTED, "For the demo on Friday.")
    assert change.deployment.name == "street"
    assert change.revision is not None
    # Nothing of this cluster sees queues or requests in flight, so the number is fixed.
    assert (change.revision.spec["min_replicas"], change.revision.spec["max_replicas"]) == (2, 2)


def test_what_was_typed_survives_each_check_and_each_error(world: World, client: Client) -> None:
    typed = {"name": "Not_one", "requests_per_second": "many", "env": "APP_LOG=1", "cpu": "lots"}
    page = client.get(f"{URL}?version={world.version2.pk}")
    page = check(client, page, memory="4Gi", comment="please", **typed)
    page = send(client, page)

    assert page.status_code == 422
    sent = fields_of(page)
    assert {name: sent[name] for name in typed} == typed
    assert (sent["memory"], sent["comment"]) == ("4Gi", "please")
    assert sent["version"] == str(world.version2.pk)


def test_an_error_shows_at_its_field_and_nothing_is_sent(world: World, client: Client) -> None:
    page = client.get(f"{URL}?version={world.version1.pk}")
    page = send(client, page, min_replicas="3", max_replicas="2")

    text = page.content.decode()
    assert "Use at least min_replicas (3)" in text
    assert fields_of(page)["max_replicas"] == "2"
    assert not ChangeRequest.objects.exists()


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ({"name": "Detector_1"}, "not a valid name"),
        ({"min_replicas": "9", "max_replicas": "9"}, "8 GPUs are left"),
        ({"env": "PYTHONPATH=/x"}, "set by the platform"),
        ({"version": "999999"}, "Select a valid choice"),
    ],
)
def test_a_refused_request_changes_nothing(
    world: World, client: Client, typed: dict[str, str], message: str
) -> None:
    page = client.get(f"{URL}?version={world.version1.pk}")
    page = check(client, page, name="street")
    audited = AuditEvent.objects.count()

    answer = send(client, page, **typed)

    assert answer.status_code == 422
    assert message in answer.content.decode()
    assert not Deployment.objects.exists()
    assert not ChangeRequest.objects.exists()
    assert AuditEvent.objects.count() == audited


def test_the_side_card_follows_each_change(world: World, client: Client) -> None:
    page = client.get(f"{URL}?version={world.version1.pk}")
    typed = {**fields_of(page), "name": "street", "min_replicas": "2", "max_replicas": "2"}

    side = client.post(URL, typed, **HTMX, HTTP_HX_TARGET="side").content.decode()

    assert not pages.page(side).is_whole_page
    assert "$2.01" in pages.page(side).part("side").text
    assert "street is available." in pages.page(side).part("side").text
    assert not Deployment.objects.exists()


def test_the_form_converts_to_yaml_and_back(world: World, client: Client) -> None:
    page = client.get(f"{URL}?version={world.version1.pk}")
    page = client.post(URL, {**fields_of(page), "name": "street", "view": "yaml"})
    shown = fields_of(page)
    body: dict[str, Any] = yaml.safe_load(shown["yaml"].replace("&#x27;", "'"))
    assert body["name"] == "street"
    body["spec"]["max_replicas"] = 2
    body["spec"]["env"] = {"APP_LOG": "1"}

    page = client.post(URL, {**shown, "yaml": yaml.safe_dump(body), "view": "form"})

    assert fields_of(page)["max_replicas"] == "2"
    assert fields_of(page)["env"] == "APP_LOG=1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "Invalid YAML in line 1"),
        ("- 1", "as a mapping"),
        ("colour: red", "no field"),
        ("spec:\n  gpus: .inf", "spec.gpus: NaN and infinity cannot be used here."),
        ("spec: {llm: {gpu_memory_utilization: .nan}}", "spec.llm.gpu_memory_utilization: NaN"),
        ("name: &n x\ncomment: *n", "Line 1: aliases and anchors"),
        ("name: " + "9" * 5000, "name: A number has more than 20 digits."),
        ('name: "\\ud800"', "name: The text contains half a character"),
        ("[" * 19_000, "nested more than 20 levels deep"),
        ("1: x", "Line 1: write the name as text"),
    ],
    ids=lambda value: value[:20],
)
def test_invalid_yaml_is_kept_and_reported(client: Client, text: str, message: str) -> None:
    answer = client.post(URL, {"as": "yaml", "yaml": text, "view": "form"})

    assert answer.status_code in {200, 422}
    assert message in answer.content.decode()
    assert html.unescape(fields_of(answer)["yaml"]) == text


@pytest.mark.parametrize(
    ("text", "field", "kept"),
    [
        ("name: 2026-99-99", "name", "2026-99-99"),
        ("spec: {cpu: 1:30}", "cpu", "1:30"),
        ("spec: {max_replicas: 999999999999999999}", "max_replicas", "9" * 18),
        ("spec: {batching: {is_dynamic: maybe}}", "batching_is_dynamic", "maybe"),
        (
            "spec: {llm: {gpu_memory_utilization: 1000000.5}}",
            "llm_gpu_memory_utilization",
            "1000000.5",
        ),
    ],
)
def test_yaml_with_a_value_that_a_field_refuses_shows_it_there(
    client: Client, text: str, field: str, kept: str
) -> None:
    assert draft_yaml.read(text)[field] == kept

    answer = client.post(URL, {"as": "yaml", "yaml": text, "view": "form"})

    assert answer.status_code == 422


def test_the_side_card_follows_the_yaml_too(world: World, client: Client) -> None:
    page = client.get(f"{URL}?version={world.version1.pk}")
    shown = fields_of(client.post(URL, {**fields_of(page), "view": "yaml"}))
    target = {**HTMX, "HTTP_HX_TARGET": "side"}

    text = shown["yaml"].replace("&#x27;", "'").replace("min_replicas: 1", "min_replicas: 2")
    text = text.replace("max_replicas: 1", "max_replicas: 2")
    good = client.post(URL, {**shown, "yaml": text}, **target).content.decode()
    bad = client.post(URL, {**shown, "yaml": "a: ["}, **target).content.decode()

    assert "$2.01" in good
    assert "Invalid YAML in line 1" in bad


def test_a_share_that_is_too_small_for_the_model_is_not_chosen(
    world: World, client: Client
) -> None:
    page = client.get(f"{URL}?version={world.version1.pk}")
    typed = fields_of(page)
    assert typed["share"]
    parts = VramEstimate(weights_mib=39_550, activations_mib=0, spread_mib=0).to_json()
    signature = {**world.version2.signature, "vram_parts_mib": parts}
    ModelVersion.objects.filter(pk=world.version2.pk).update(signature=signature)

    page = client.post(URL, {**typed, "version": str(world.version2.pk), "go": "check"})

    assert "rejected: has 24,576 MiB, needs 40,000 MiB" in page.content.decode()
    assert fields_of(page).get("share", "") == ""
