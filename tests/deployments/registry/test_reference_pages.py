"""Versions by reference on the pages: registered, shown as not verified, requested as deployments."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from django.test import Client

from deployments.models import ChangeRequest, Model, ModelVersion
from deployments.registry.services import references
from deployments.registry.services.references import ReferenceDraft
from fleet.clusters.domain.capabilities import Capabilities, Feature
from fleet.clusters.domain.capability_descriptions import FEATURE_DESCRIPTIONS
from fleet.models import Cluster
from portal.accounts.models import User
from tests import page as pages
from tests.deployments.world import World

URI = f"hf://org/chat:{'ab12' * 10}"
TYPED = {
    "team": "vision",
    "model": "chat",
    "source_uri": URI,
    "parameters_millions": "8,190",
    "dtype": "bf16",
    "context_length": "32768",
    "licence": "Apache-2.0",
    "metrics": "accuracy = 0.8",
}


@pytest.fixture
def client(world: World, signed_in: Callable[[User], Client]) -> Client:
    features = {name: Feature(is_there=True) for name in FEATURE_DESCRIPTIONS}
    Cluster.objects.update(capabilities=Capabilities(features=features).to_json())
    return signed_in(world.member)


def text_of(answer: Any) -> str:
    return html.unescape(answer.content.decode())


@pytest.fixture
def version(world: World) -> ModelVersion:
    stated = {"parameters_millions": 8190, "dtype": "bf16", "context_length": 32768}
    draft = ReferenceDraft(URI, metadata=stated)
    return references.register(
        actor=world.member, team_slug="vision", model_name="chat", draft=draft
    )


def new(client: Client, world: World, version: ModelVersion, **typed: str) -> Any:
    data = {
        "version": str(version.pk),
        "cluster": str(world.cluster_id),
        "name": "chat",
        "engine": "kserve-vllm",
        "share": "g5.xlarge|nvidia.com/gpu|1",
        "network_access": "open",
        **typed,
    }
    return client.post("/vision/deployments/new", data)


def test_a_reference_is_registered_in_the_browser_and_its_page_says_what_is_not_verified(
    client: Client,
) -> None:
    assert pages.page(client.get("/vision/register?model=chat")).field("source_uri").value == ""

    made = client.post("/vision/register", TYPED, follow=True)

    assert made.redirect_chain == [("/vision/models/chat/1", 302)]
    page = text_of(made)
    assert "chat:1 registered." in page
    assert URI in page
    assert "Slipway has not verified these weights" in page
    assert "The reference is pinned" in page
    assert "Bucket" not in page
    version = ModelVersion.objects.get(source_uri=URI)
    assert version.metadata == {
        "parameters_millions": 8190,
        "dtype": "bf16",
        "context_length": 32768,
        "licence": "Apache-2.0",
        "metrics": {"accuracy": 0.8},
    }
    assert "by reference" in text_of(client.get("/vision/models/chat"))


def test_an_error_is_shown_at_its_field_and_nothing_is_created(client: Client) -> None:
    wrong = {**TYPED, "source_uri": "hf://me:hunter2@org/chat", "parameters_millions": "8B"}

    answer = client.post("/vision/register", wrong)

    page = text_of(answer)
    assert answer.status_code == 422
    assert "The reference seems to contain a password or token." in page
    assert "Enter millions: 8030 for 8 billion." in page
    assert not Model.objects.filter(name="chat").exists()


def test_a_viewer_reads_who_may(
    client: Client, world: World, signed_in: Callable[[User], Client]
) -> None:
    viewer = signed_in(world.viewer)

    assert "You can't register versions" in text_of(viewer.get("/vision/register"))
    refused = viewer.post("/vision/register", TYPED)

    assert refused.status_code == 403
    assert not Model.objects.filter(name="chat").exists()


def test_a_loose_reference_warns_on_its_page(client: Client) -> None:
    client.post("/vision/register", {**TYPED, "source_uri": "hf://org/chat"})

    page = text_of(client.get("/vision/models/chat/1"))

    assert "can change after approval" in page
    assert "add the commit" in page


def test_the_form_takes_the_weights_from_the_version_and_needs_nothing_else(
    client: Client, world: World, version: ModelVersion
) -> None:
    page = pages.page(client.get(f"/vision/deployments/new?version={version.pk}"))

    assert URI in page.text
    assert "8,190 million parameters, bf16, up to 32,768 tokens" in page.text
    assert not page.fields("llm_hugging_face_id")
    assert "it cannot load hf:// references." in page.text
    assert page.field("engine", "kserve-vllm").is_chosen
    assert page.field("engine", "triton").is_disabled


def test_the_engine_follows_the_version_until_somebody_chooses_it(
    client: Client, world: World, version: ModelVersion
) -> None:
    chosen = new(client, world, version, engine="kserve-triton", suggested_engine="kserve-triton")
    response = new(client, world, version, engine="kserve-triton", go="submit")

    assert pages.page(chosen).field("engine", "kserve-vllm").is_chosen
    # An explicit choice is refused with a message, not changed.
    assert "kserve-triton cannot load hf://" in text_of(response)
    assert not ChangeRequest.objects.exists()


def test_a_reference_is_not_offered_beside_others(
    client: Client, world: World, version: ModelVersion
) -> None:
    page = pages.page(client.post("/vision/deployments/new", {"version": world.version1.pk}))

    assert page.fields("additional_model_1")
    assert "chat:1" not in page.group("Multi-model serving").text


def test_the_request_from_the_form_serves_exactly_those_weights(
    client: Client, world: World, version: ModelVersion
) -> None:
    page = text_of(new(client, world, version))
    submitted = new(client, world, version, go="submit")

    assert "which the portal does not verify" in page
    change = ChangeRequest.objects.get()
    assert submitted.url == f"/approvals/{change.pk}"
    assert change.revision is not None
    assert change.revision.spec["llm"]["hugging_face_id"] == URI.removeprefix("hf://")
    page = text_of(client.get(f"/approvals/{change.pk}"))
    assert "Reference" in page
    assert URI in page


def test_the_copied_request_is_taken_by_the_api(
    client: Client, world: World, version: ModelVersion
) -> None:
    page = text_of(new(client, world, version))
    start = page.index("comment: ''", page.index("YAML</summary>"))
    body = yaml.safe_load(page[page.rindex("name: chat", 0, start) : start + len("comment: ''")])

    answer = client.post("/api/v1/deployments", body, content_type="application/json")

    assert answer.status_code == 201, answer.content
    assert body["spec"]["llm"] == {"tensor_parallel": 1}
    assert ChangeRequest.objects.get().revision is not None
