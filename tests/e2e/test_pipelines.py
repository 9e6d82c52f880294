"""Pipelines in the demo: what they answer is what the deployments behind them compute."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from tests import plain_http
from tests.e2e.rest import Classifier, Person
from tests.waiting import wait_for

FIRST, SECOND = {"deployment": "filetype"}, {"deployment": "second"}
KINDS: dict[str, list[dict[str, Any]]] = {
    "ensemble": [FIRST, SECOND],
    "splitter": [{**FIRST, "weight": 50}, {**SECOND, "weight": 50}],
    "switch": [{**FIRST, "condition": '[@this].#(id=="first")'}, SECOND],
    "sequence": [FIRST, {**SECOND, "condition": "outputs.0.data.#(>0)"}],
}


@pytest.fixture
def second(member: Person, lead: Person, version: dict[str, Any]) -> Iterator[str]:
    """Where it answers."""
    change = member.request_deployment(version, "second")
    lead.approve(change)
    yield str(member.wait_until_ready(change["deployment_id"])["url"])
    member.retire(change["deployment_id"], approved_by=lead)


def test_every_kind_of_pipeline_answers_with_what_its_deployments_compute(
    member: Person, lead: Person, classifier: Classifier, second: str
) -> None:
    responses = {kind: _ask(member, lead, kind) for kind in KINDS}
    urls = {kind: _wait_until_ready(member, pipeline) for kind, pipeline in responses.items()}
    tensor = {"name": "bytes", "datatype": "INT32", "shape": [1, 2048]}
    body = {"id": "first", "inputs": [{**tensor, "data": classifier.features(b"%PDF-1.4")}]}
    # Not the same version, after tests that promoted another one behind the first.
    at_second = f"{second}/v2/models/filetype/infer"
    computed, by_second = (
        plain_http.client.post(url, json=body).json()["outputs"]
        for url in (classifier.url, at_second)
    )

    answers = {kind: plain_http.client.post(url, json=body) for kind, url in urls.items()}

    statuses = {kind: answer.status_code for kind, answer in answers.items()}
    assert statuses == dict.fromkeys(KINDS, 200)
    together = answers.pop("ensemble").json()
    assert {name: one["outputs"] for name, one in together.items()} == {
        "filetype": computed,
        "second": by_second,
    }
    # One of the two, drawn by weight.
    assert answers.pop("splitter").json()["outputs"] in (computed, by_second)
    assert answers.pop("switch").json()["outputs"] == computed
    assert answers.pop("sequence").json()["outputs"] == by_second
    assert answers == {}
    for pipeline in responses.values():
        _approve(lead, member.post(f"pipelines/{pipeline}/retire"))
    # A deployment cannot be retired while a pipeline that is being removed still calls it.
    for kind, pipeline in responses.items():
        wait_for(f"end of the {kind}", partial(_is_retired, member, pipeline))


@pytest.fixture
def closed(member: Person, lead: Person, version: dict[str, Any]) -> Iterator[str]:
    """Where it answers callers with a key."""
    change = member.request_deployment(version, "closed", network={"access": "keys"})
    lead.approve(change)
    yield str(member.wait_until_ready(change["deployment_id"])["url"])
    member.retire(change["deployment_id"], approved_by=lead)


def test_a_deployment_that_needs_a_key_answers_through_a_pipeline(
    member: Person, lead: Person, classifier: Classifier, closed: str
) -> None:
    nodes = [{"name": "root", "kind": "ensemble", "steps": [FIRST, {"deployment": "closed"}]}]
    body = {"team": "vision", "cluster_id": 1, "name": "with-key", "nodes": nodes}
    asked = member.post("pipelines", body)
    pipeline = int(_approve(lead, asked)["pipeline_id"])
    url = _wait_until_ready(member, pipeline)
    tensor = {"name": "bytes", "datatype": "INT32", "shape": [1, 2048]}
    sent = {"inputs": [{**tensor, "data": classifier.features(b"%PDF-1.4")}]}
    directly = f"{closed}/v2/models/filetype/infer"

    through = plain_http.client.post(url, json=sent)
    with_other = plain_http.client.post(url, json=sent, headers={"x-api-key": "slc_none"})
    without = plain_http.client.post(directly, json=sent)

    assert (through.status_code, with_other.status_code, without.status_code) == (200, 200, 401)
    for answer in (through, with_other):
        assert all(one["outputs"] for one in answer.json().values())
    _approve(lead, member.post(f"pipelines/{pipeline}/retire"))
    wait_for("its end", partial(_is_retired, member, pipeline))


def _ask(member: Person, lead: Person, kind: str) -> int:
    nodes = [{"name": "root", "kind": kind, "steps": KINDS[kind]}]
    body = {"team": "vision", "cluster_id": 1, "name": f"as-{kind}", "nodes": nodes}
    return int(_approve(lead, member.post("pipelines", body))["pipeline_id"])


def _approve(lead: Person, change: dict[str, Any]) -> dict[str, Any]:
    decision = {"evidence_hash": change["evidence_hash"]}
    return dict(lead.post(f"pipeline-changes/{change['id']}/approve", decision))


def _wait_until_ready(member: Person, pipeline: int) -> str:
    def is_ready() -> str | None:
        shown = member.try_get(f"pipelines/{pipeline}")
        return str(shown["url"]) if shown and shown["state"] == "ready" else None

    return wait_for(f"pipeline {pipeline}", is_ready)


def _is_retired(member: Person, pipeline: int) -> bool:
    shown = member.try_get(f"pipelines/{pipeline}")
    return shown is not None and shown["state"] == "retired"
