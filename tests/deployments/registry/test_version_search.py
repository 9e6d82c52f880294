"""Find versions by what is known of them, on pages and through the API."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from deployments.models import ModelVersion
from deployments.registry.domain.metadata import search_query
from deployments.registry.selectors import named_models, version_search
from deployments.registry.selectors.version_search import VersionFilter
from deployments.registry.services import metadata, models, references
from deployments.registry.services.references import ReferenceDraft
from portal.accounts.models import Membership, Team
from tests.deployments.uploading import People
from tests.page import page

pytestmark = pytest.mark.django_db
INT8 = {
    "metrics": {"mAP": 0.52, "latency_ms": 4},
    "labels": {"precision": "int8", "edge": ""},
    "dataset_version": "2026-10",
}
FP16 = {
    "metrics": {"mAP": 0.61, "latency_ms": 9},
    "labels": {"precision": "fp16"},
    "dataset_version": "2026-10",
}
OLD = {"metrics": {"mAP": 0.41}, "labels": {"precision": "int8"}, "dataset_version": "2025-01"}


def register(
    people: People, model: str, name: str, stated: dict[str, Any], readme: str = ""
) -> None:
    references.register(
        actor=people.member,
        team_slug="vision",
        model_name=model,
        draft=ReferenceDraft(f"hf://org/{name}", metadata=stated, readme=readme),
    )


@pytest.fixture
def client(people: People, client: Client) -> Client:
    register(people, "detector", "one", OLD)
    register(people, "detector", "two", INT8, "# Use\nDetects scratches on painted parts.")
    register(people, "detector", "three", FP16)
    register(people, "chat", "four", {"licence": "Apache-2.0"})
    models.describe(
        actor=people.member,
        team_slug="vision",
        name="chat",
        description="Answers questions",
        task="text generation",
    )
    client.force_login(people.member)
    return client


def found(client: Client, **query: Any) -> list[str]:
    answer = client.get("/api/v1/versions", query)
    assert answer.status_code == 200, answer.json()
    return [f"{row['model']}:{row['number']}" for row in answer.json()["results"]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("int8 detector 2026-10 mAP>0.5", ["detector:2"]),
        ("the int8 detector trained on dataset", []),
        ("the int8 detector with 2026-10", ["detector:2"]),
        ("detector", ["detector:3", "detector:2", "detector:1"]),
        ("etecto", ["detector:3", "detector:2", "detector:1"]),
        ("v3", ["detector:3"]),
        ("detector:3", ["detector:3"]),
        ("vision/detector:1", ["detector:1"]),
        ("nlp/detector:1", []),
        ("vision/det", ["detector:3", "detector:2", "detector:1"]),
        ("scratches", ["detector:2"]),
        ("generation", ["chat:1"]),
        ("questions", ["chat:1"]),
        ("apache", ["chat:1"]),
        ("precision=int8", ["detector:2", "detector:1"]),
        ("latency_ms<5", ["detector:2"]),
        ("map>=0.52 map<0.61", ["detector:2"]),
        ("100%", []),
        ("_____", []),
        ("' OR 1=1 --", []),
        ("a:* & !b | (c)", []),
        ("\\", []),
    ],
)
def test_one_text_finds_what_it_says(client: Client, text: str, expected: list[str]) -> None:
    assert found(client, search=text) == expected


def test_words_of_a_readme_are_found_in_other_forms(client: Client) -> None:
    """Full text of PostgreSQL; SQLite searches parts of words."""
    from django.db import connection

    if connection.vendor != "postgresql":
        pytest.skip("full text is PostgreSQL's")
    assert found(client, search="scratched paint") == ["detector:2"]


def test_filters_and_order_by_a_metric(client: Client) -> None:
    assert found(client, label=["precision=int8", "edge"]) == ["detector:2"]
    assert found(client, label="precision") == ["detector:3", "detector:2", "detector:1"]
    assert found(client, metric=["map>0.45", "latency_ms<5"]) == ["detector:2"]
    assert found(client, task="text generation") == ["chat:1"]
    assert found(client, sort="-metric:mAP") == ["detector:3", "detector:2", "detector:1"]
    assert found(client, sort="metric:map", state="ready") == [
        *("detector:1", "detector:2", "detector:3"),
    ]
    assert found(client, sort="created", model="detector") == [
        *("detector:1", "detector:2", "detector:3"),
    ]


def test_pages_of_a_metric_follow_each_other(client: Client) -> None:
    first = client.get("/api/v1/versions", {"sort": "-metric:map", "limit": "2"}).json()
    second = client.get(first["next"]).json()

    assert [row["number"] for row in first["results"]] == [3, 2]
    assert [row["number"] for row in second["results"]] == [1]
    assert second["next"] is None


@pytest.mark.parametrize(
    "query",
    [
        {"metric": "map"},
        {"metric": "map>high"},
        {"sort": "metric:"},
        {"sort": "size"},
        {"format": "nothing"},
        {"state": "lost"},
        {"lable": "edge"},
        {"search": "x" * 201},
    ],
)
def test_what_cannot_be_a_filter_is_refused(client: Client, query: dict[str, str]) -> None:
    answer = client.get("/api/v1/versions", query)

    assert answer.status_code == 422
    assert next(iter(query)) in answer.content.decode()


def test_a_cursor_of_another_order_is_refused(client: Client) -> None:
    cursor = "cD1hYmM="  # p=abc
    answer = client.get("/api/v1/versions", {"sort": "metric:map", "cursor": cursor})

    assert answer.status_code == 400


def counts(client: Client, **query: Any) -> dict[str, dict[str, int]]:
    rows = client.get("/api/v1/versions/facets", query).json()
    return {row["name"]: {v["value"]: v["count"] for v in row["values"]} for row in rows}


def test_counts_leave_out_the_choice_of_their_own(client: Client) -> None:
    everything = counts(client)
    assert everything["team"] == {"vision": 4}
    assert everything["state"] == {"ready": 4}
    assert everything["task"] == {"text generation": 1}
    assert everything["label"] == {"precision=int8": 2, "edge": 1, "precision=fp16": 1}
    assert everything["metric"] == {"map": 3, "latency_ms": 2}

    chosen = counts(client, task="text generation", state="archived")
    assert chosen["state"] == {"ready": 1}
    assert chosen["task"] == {}
    assert chosen["label"] == {}


def test_others_versions_are_neither_found_nor_counted(people: People, client: Client) -> None:
    client.force_login(people.stranger)

    assert found(client, search="vision/detector:3") == []
    assert found(client, sort="metric:map") == []
    assert set(map(str, counts(client).values())) == {"{}"}


def test_corrected_metadata_is_found_and_the_former_is_not(people: People, client: Client) -> None:
    version = ModelVersion.objects.get(model__name="detector", number=1)

    metadata.describe(actor=people.member, version_id=version.pk, metadata={"recall": 0.9})

    assert found(client, search="recall>0.8") == ["detector:1"]
    assert found(client, search="2025-01") == []
    assert found(client, search="map<0.5") == []
    assert found(client, label="precision=int8") == ["detector:2"]


def test_the_page_finds_a_version_and_narrows(client: Client) -> None:
    answer = client.get("/vision/models", {"q": "int8 mAP>0.5"})

    shown = page(answer)
    assert [row["Version"] for row in shown.rows] == ["detector:2"]
    assert shown.rows[0]["map"] == "0.52"
    assert shown.rows[0]["Dataset"] == "2026-10"
    assert shown.link("detector:2") == "/vision/models/detector/2"
    assert "label=edge" in shown.links["edge 1"]


def test_the_page_shows_models_until_the_search_says_more(client: Client) -> None:
    assert [row["Name"] for row in page(client.get("/vision/models?q=detector")).rows] == [
        "detector"
    ]
    assert page(client.get("/vision/models?q=scratches")).rows[0]["Version"] == "detector:2"
    sorted_by_map = page(client.get("/vision/models?sort=-metric:map")).rows
    assert [row["map"] for row in sorted_by_map] == ["0.61", "0.52", "0.41"]
    fragment = client.get(
        "/vision/models?q=v3", headers={"HX-Request": "true", "HX-Target": "results"}
    )
    assert not page(fragment).is_whole_page
    assert page(fragment).rows[0]["Version"] == "detector:3"


def test_all_teams_are_a_choice(people: People, client: Client) -> None:
    Membership.objects.create(user=people.member, team=Team.objects.get(slug="nlp"), role="member")
    references.register(
        actor=people.member,
        team_slug="nlp",
        model_name="detector",
        draft=ReferenceDraft("hf://org/five", metadata=INT8),
    )

    assert len(page(client.get("/vision/models?q=v1&team=vision")).rows) == 2
    assert len(page(client.get("/vision/models?q=v1&teams=all")).rows) == 3
    assert [row["Version"] for row in page(client.get("/vision/models?q=nlp/detector:1")).rows] == [
        "detector:1 nlp"
    ]


@pytest.mark.parametrize("sort", ["created", "-created"])
@pytest.mark.parametrize(
    "query",
    [
        {},
        {"search": "org"},
        {"search": "org hf"},
        {"search": "2026-10"},
        {"search": "_"},
        {"model": "detector", "search": "org"},
        {"model": "detector", "state": "ready", "team": "vision"},
        {"sha256": "00"},
    ],
    ids=str,
)
def test_pages_of_a_search_have_all_that_is_found(
    people: People, client: Client, query: dict[str, str], sort: str
) -> None:
    facts: dict[str, Any] = {name: value for name, value in query.items() if name != "search"}
    filters = VersionFilter(query=search_query.parse(query.get("search", "")), **facts)
    rows = version_search.search(actor=people.member, filters=filters)
    expected = [
        f"{row.model.name}:{row.number}" for row in rows.order_by(sort.replace("created", "id"))
    ]

    seen, address = [], "/api/v1/versions"
    answer = client.get(address, {**query, "sort": sort, "limit": "1"}).json()
    while True:
        seen += [f"{row['model']}:{row['number']}" for row in answer["results"]]
        if answer["next"] is None:
            break
        answer = client.get(answer["next"]).json()

    assert seen == expected
    if answer["previous"]:
        before = client.get(answer["previous"]).json()["results"]
        assert [f"{row['model']}:{row['number']}" for row in before] == expected[-2:-1]


def test_a_search_by_words_alone_is_limited_to_the_readers_teams(
    people: People, client: Client
) -> None:
    assert found(client, search="org") == [*("chat:1", "detector:3", "detector:2", "detector:1")]

    Membership.objects.filter(user=people.member).delete()

    assert found(client, search="org") == []
    assert found(client) == []


def test_models_that_are_too_many_to_name_are_found_too(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(named_models, "_MAX_IDS", 0)

    assert found(client, search="detector int8") == ["detector:2", "detector:1"]
    assert found(client, search="vision/det") == ["detector:3", "detector:2", "detector:1"]
