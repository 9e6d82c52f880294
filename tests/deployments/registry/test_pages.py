from __future__ import annotations

import pytest
from django.test import Client

from deployments.registry.services import aliases
from tests.deployments import onnx_models
from tests.deployments.uploading import People, Upload
from tests.page import page

pytestmark = pytest.mark.django_db


def test_every_page_of_a_ready_version_answers(
    people: People, verified: Upload, client: Client
) -> None:
    verified(onnx_models.linear(), metadata={"accuracy": 0.9, "labels": {"edge": ""}})
    verified(onnx_models.linear(scale=2), metadata={"accuracy": 0.95, "map50": 0.5})
    aliases.move(
        actor=people.member, team_slug="vision", model_name="detector", alias="staging", number=2
    )
    client.force_login(people.member)

    expected = {
        "/vision/models": ["detector", "staging → 2"],
        "/vision/models?q=det&label=edge&sort=name": ["detector"],
        "/vision/models/detector": ["0.95", "Metrics by version", "map50"],
        "/vision/models/detector/compare?v=1&v=2": ["differs", "0.9"],
        "/vision/models/detector/edit": ["Description"],
        "/vision/models/detector/2": ["tritonclient", "config.pbtxt", "VersionId", "Deploy"],
        "/vision/models/detector/2/metadata": ["0.95", "map50 = 0.5"],
        "/vision/models/detector/2/checks": ["Serving repository"],
        "/vision/upload": ["Drop a model here", "noscript"],
    }
    for address, fragments in expected.items():
        answer = client.get(address)
        assert answer.status_code == 200, address
        text = answer.content.decode()
        assert [fragment for fragment in fragments if fragment not in text] == [], address
        assert "style=" not in text
        assert "onclick" not in text


def test_a_lone_version_offers_no_comparison(
    people: People, client: Client, verified: Upload
) -> None:
    verified(onnx_models.linear())
    client.force_login(people.member)

    alone = page(client.get("/vision/models/detector"))

    assert not [part for part in alone.all("input") if part.attributes.get("name") == "v"]
    verified(onnx_models.linear(scale=2))
    both = page(client.get("/vision/models/detector"))
    assert len([part for part in both.all("input") if part.attributes.get("name") == "v"]) == 2
