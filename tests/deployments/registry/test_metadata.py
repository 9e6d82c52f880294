"""Metrics, labels and the README of a version: what is stored, shown and refused."""

from __future__ import annotations

import math
from typing import Any

import pytest
from django.test import Client

from deployments.models import ModelVersion
from deployments.registry.domain.metadata import metadata_text, version_metadata
from deployments.registry.services import metadata, references
from deployments.registry.services.references import ReferenceDraft
from portal.audit.models import AuditEvent
from portal.core.errors import Forbidden, Invalid
from tests.deployments.uploading import People
from tests.page import page

pytestmark = pytest.mark.django_db
STATED = {
    "metrics": {"mAP": 0.52, "score": 3, "loss": 0.1},
    "directions": {"score": "lower"},
    "labels": {"precision": "int8", "edge": ""},
    "dataset_version": "2026-10",
    "licence": "Apache-2.0",
    "intended_use": "Finding defects on photos of the line",
}


@pytest.fixture
def version(people: People) -> ModelVersion:
    return references.register(
        actor=people.member,
        team_slug="vision",
        model_name="detector",
        draft=ReferenceDraft("hf://org/detector", metadata=STATED, readme="# Detector"),
    )


def test_what_is_stored_can_be_sent_again(version: ModelVersion) -> None:
    assert version.metadata == STATED

    assert version_metadata.clean(version.metadata) == (STATED, {})


def test_a_flat_dictionary_of_a_training_run_is_sorted_into_metrics_and_labels() -> None:
    cleaned, problems = version_metadata.clean(
        {"val/mAP": 0.5, "epochs": 30, "optimizer": "adam", "amp": True, "notes": "", "seed": None}
    )

    assert problems == {}
    assert cleaned == {
        "metrics": {"val/mAP": 0.5, "epochs": 30},
        "labels": {"optimizer": "adam", "amp": "true"},
    }


@pytest.mark.parametrize(
    ("stated", "field", "message"),
    [
        ({"metrics": {"mAP": "high"}}, "metrics", "mAP: enter a finite number."),
        ({"metrics": {"mAP": True}}, "metrics", "mAP: enter a finite number."),
        ({"metrics": {"mAP": math.nan}}, "metrics", "mAP: enter a finite number."),
        ({"metrics": {"mAP": "1e999"}}, "metrics", "mAP: enter a finite number."),
        ({"metrics": {"mAP": 10**400}}, "metrics", "mAP: enter a finite number."),
        ({"metrics": {"mAP": 1, "map": 2}}, "metrics", "'map' appears twice."),
        ({"metrics": {"": 1}}, "metrics", "not a valid metric name"),
        ({"metrics": {"a>b": 1}}, "metrics", "not a valid metric name"),
        ({"metrics": [1]}, "metrics", "Enter an object of name to number."),
        ({"metrics": {f"m{n}": n for n in range(1001)}}, "metrics", "at most 1000 metrics"),
        ({"metrics": {"a": 1}, "directions": {"a": "up"}}, "directions", "higher or lower"),
        ({"labels": {"a b": "x"}}, "labels", "not a valid field name"),
        ({"labels": {"a": ["x"]}}, "labels", "a: enter text or a number."),
        ({"labels": {"a": "x\ny"}}, "labels", "one line of at most 200"),
        ({"labels": {f"k{n}": "" for n in range(65)}}, "labels", "at most 64 labels"),
        ({"accuracy": "91%"}, "accuracy", "between 0 and 1"),
    ],
)
def test_what_cannot_be_stored_is_named(stated: dict[str, Any], field: str, message: str) -> None:
    _, problems = version_metadata.clean(stated)

    assert list(problems) == [f"metadata.{field}"]
    assert message in problems[f"metadata.{field}"]


def test_the_form_writes_what_it_reads() -> None:
    text = metadata_text.format_metrics(STATED)

    assert text == "loss = 0.1\nmAP = 0.52\nscore = 3 (lower is better)"
    typed = metadata_text.parse_metrics(text) | {
        "labels": metadata_text.parse_labels(metadata_text.format_labels(STATED))
    }
    cleaned, problems = version_metadata.clean(typed)
    assert problems == {}
    assert cleaned == {
        "metrics": {"mAP": 0.52, "score": 3.0, "loss": 0.1},
        "directions": {"score": "lower"},
        "labels": {"precision": "int8", "edge": ""},
    }


def test_the_page_shows_metrics_with_their_direction_and_the_readme_without_its_html(
    people: People, version: ModelVersion, client: Client
) -> None:
    metadata.describe(
        actor=people.member, version_id=version.pk, readme="# Use\n<script>x</script> **now**"
    )
    client.force_login(people.viewer)

    response = client.get("/vision/models/detector/1")

    rows = [tuple(row.values()) for row in page(response).rows if "Metric" in row]
    assert rows == [("loss", "0.1", "lower"), ("mAP", "0.52", "higher"), ("score", "3", "lower")]
    html = response.content.decode()
    assert "<h1>Use</h1>" in html
    assert "&lt;script&gt;x&lt;/script&gt; <strong>now</strong>" in html


def test_rest_replaces_the_readme_and_keeps_the_metadata_and_the_other_way_round(
    people: People, version: ModelVersion, client: Client
) -> None:
    client.force_login(people.member)
    address = f"/api/v1/versions/{version.pk}"

    body = client.patch(address, {"readme": "# New"}, content_type="application/json").json()
    assert (body["readme"], body["metadata"]) == ("# New", STATED)

    body = client.patch(
        address, {"metadata": {"loss": 0.2}}, content_type="application/json"
    ).json()
    assert (body["readme"], body["metadata"]) == ("# New", {"metrics": {"loss": 0.2}})
    first, second = AuditEvent.objects.filter(action="version.described").order_by("id")
    assert (first.before["readme"], first.after["readme"]) == ("# Detector", "# New")
    assert "readme" not in second.after
    assert second.before == STATED


def test_a_refused_edit_changes_nothing(people: People, version: ModelVersion) -> None:
    count = AuditEvent.objects.count()

    with pytest.raises(Forbidden):
        metadata.describe(actor=people.viewer, version_id=version.pk, readme="mine")
    with pytest.raises(Invalid) as refusal:
        metadata.describe(
            actor=people.member, version_id=version.pk, metadata={}, readme="x" * 100_001
        )

    assert list(refusal.value.fields) == ["readme"]
    version.refresh_from_db()
    assert (version.metadata, version.readme) == (STATED, "# Detector")
    assert AuditEvent.objects.count() == count
    assert version.metric_rows.count() == 3
