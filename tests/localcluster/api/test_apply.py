"""Server-side apply: ownership, conflicts, removal, idempotence."""

import json
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slipway_localcluster.apply import apply
from slipway_localcluster.errors import Conflict, JsonObject
from slipway_localcluster.kinds import CONFIG_MAP, DEPLOYMENT
from slipway_localcluster.managed_fields import Manager, flatten, read
from slipway_localcluster.topology import Topology
from tests.localcluster.api.manifests import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    SERVICES,
    config_map,
    deployment,
    inference_service,
)

_HEADERS = {"Content-Type": "application/apply-patch+yaml"}
_MERGE = {"Content-Type": "application/merge-patch+json"}


def _put(
    http: httpx.Client, url: str, body: JsonObject, manager: str = "slipway", **extra: str
) -> httpx.Response:
    query = {"fieldManager": manager, "fieldValidation": "Strict", **extra}
    place = f"{url}/{body['metadata']['name']}"
    return http.patch(place, content=json.dumps(body), headers=_HEADERS, params=query)


def test_apply_creates_and_applying_again_changes_nothing(
    http: httpx.Client, namespace: str
) -> None:
    url = SERVICES.format(namespace)

    first = _put(http, url, inference_service("detector"))
    second = _put(http, url, inference_service("detector"))

    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json() == second.json()


def test_conflict_names_the_other_manager_and_the_field(http: httpx.Client, namespace: str) -> None:
    url = DEPLOYMENTS.format(namespace)
    _put(http, url, deployment("web"))
    before = http.get(f"{url}/web").json()

    refused = _put(http, url, deployment("web", image="other"), "somebody")

    status = refused.json()
    assert refused.status_code == 409
    assert status["reason"] == "Conflict"
    assert status["details"]["causes"] == [
        {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "slipway" using apps/v1',
            "field": '.spec.template.spec.containers[name="web"].image',
        }
    ]
    assert http.get(f"{url}/web").json() == before


def test_force_takes_the_field_from_its_owner(http: httpx.Client, namespace: str) -> None:
    url = DEPLOYMENTS.format(namespace)
    _put(http, url, deployment("web"))

    forced = _put(http, url, deployment("web", image="other"), "somebody", force="true")
    refused = _put(http, url, deployment("web"))

    assert forced.status_code == 200
    assert refused.status_code == 409
    assert 'conflict with "somebody"' in refused.json()["message"]


def test_a_patched_field_belongs_to_the_manager_of_the_patch(
    http: httpx.Client, namespace: str
) -> None:
    url = DEPLOYMENTS.format(namespace)
    _put(http, url, deployment("web"))
    change = json.dumps({"spec": {"replicas": 4}})
    query = {"fieldManager": "hand"}
    http.patch(f"{url}/web", content=change, headers=_MERGE, params=query)

    refused = _put(http, url, deployment("web"))
    same = _put(http, url, deployment("web", replicas=4))

    assert refused.status_code == 409
    assert refused.json()["details"]["causes"][0]["field"] == ".spec.replicas"
    assert same.status_code == 200


def test_list_element_no_longer_applied_is_removed_and_others_stay(
    http: httpx.Client, namespace: str
) -> None:
    url = DEPLOYMENTS.format(namespace)
    manifest = deployment("web")
    env = manifest["spec"]["template"]["spec"]["containers"][0]["env"]
    env.append({"name": "B", "value": "2"})
    _put(http, url, manifest)
    other = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "template": {
                "spec": {"containers": [{"name": "web", "env": [{"name": "C", "value": "3"}]}]}
            }
        },
    }
    _put(http, url, other, "injector")
    del env[0]

    after = _put(http, url, manifest).json()

    kept = after["spec"]["template"]["spec"]["containers"][0]["env"]
    assert kept == [{"name": "B", "value": "2"}, {"name": "C", "value": "3"}]


def test_dry_run_stores_nothing(http: httpx.Client, namespace: str) -> None:
    url = SERVICES.format(namespace)

    created = _put(http, url, inference_service("detector"), dryRun="All")

    assert created.status_code == 201
    assert created.json()["metadata"]["uid"]
    assert http.get(f"{url}/detector").status_code == 404


def test_dry_run_reports_conflicts_and_changes_nothing(http: httpx.Client, namespace: str) -> None:
    url = DEPLOYMENTS.format(namespace)
    _put(http, url, deployment("web"))
    before = http.get(f"{url}/web").json()

    refused = _put(http, url, deployment("web", image="x"), "somebody", dryRun="All")
    preview = _put(http, url, deployment("web", replicas=9), dryRun="All")

    assert refused.status_code == 409
    assert preview.json()["spec"]["replicas"] == 9
    assert http.get(f"{url}/web").json() == before


def test_deleting_the_last_field_of_a_map_removes_the_map(
    http: httpx.Client, namespace: str
) -> None:
    url = CONFIG_MAPS.format(namespace)
    _put(http, url, config_map("c", a="1"))
    bare = config_map("c")
    del bare["data"]

    after = _put(http, url, bare).json()

    assert "data" not in after


_NAMES = st.sampled_from(["a", "b", "c", "d"])
_DATA = st.dictionaries(_NAMES, st.sampled_from(["1", "2"]))
_ENV = st.dictionaries(_NAMES, st.sampled_from(["1", "2"]))


def _author(name: str) -> Manager:
    return Manager(name, "Apply", "v1", "", "2026-01-01T00:00:00Z", frozenset())


def _map(data: dict[str, str]) -> JsonObject:
    return {"metadata": {"name": "c", "namespace": "n"}, "data": dict(data)}


def _env(values: dict[str, str]) -> JsonObject:
    container: dict[str, Any] = {"name": "web", "image": "x"}
    if values:
        container["env"] = [{"name": name, "value": value} for name, value in values.items()]
    spec = {"template": {"spec": {"containers": [container]}}}
    return {"metadata": {"name": "web", "namespace": "n"}, "spec": spec}


@given(first=_ENV, second=_ENV)
@settings(deadline=None)
def test_apply_is_idempotent_and_yields_the_applied_state(
    first: dict[str, str], second: dict[str, str]
) -> None:
    topology = Topology(DEPLOYMENT)
    live = apply(None, _env(first), topology, _author("one"), force=False)

    after = apply(live, _env(second), topology, _author("one"), force=False)
    again = apply(after, _env(second), topology, _author("one"), force=False)

    container = after["spec"]["template"]["spec"]["containers"][0]
    assert {item["name"]: item["value"] for item in container.get("env", [])} == second
    assert again is after


@given(first=_DATA, second=_DATA, next_data=_DATA)
@settings(deadline=None)
def test_dropped_field_stays_while_another_manager_owns_it(
    first: dict[str, str], second: dict[str, str], next_data: dict[str, str]
) -> None:
    topology = Topology(CONFIG_MAP)
    live = apply(None, _map(first), topology, _author("one"), force=False)
    both = apply(live, _map(second), topology, _author("two"), force=True)

    after = apply(both, _map(next_data), topology, _author("one"), force=True)

    assert (after.get("data") or {}) == {**second, **next_data}


@given(first=_DATA, second=_DATA)
@settings(deadline=None)
def test_conflict_exactly_when_a_shared_field_has_another_value(
    first: dict[str, str], second: dict[str, str]
) -> None:
    topology = Topology(CONFIG_MAP)
    live = apply(None, _map(first), topology, _author("one"), force=False)
    disputed = {name for name in first if name in second and first[name] != second[name]}

    if not disputed:
        merged = apply(live, _map(second), topology, _author("two"), force=False)
        assert (merged.get("data") or {}) == {**first, **second}
        return
    with pytest.raises(Conflict) as refused:
        apply(live, _map(second), topology, _author("two"), force=False)

    assert {cause.field for cause in refused.value.causes} == {f".data.{name}" for name in disputed}


@given(data=_ENV)
def test_managed_fields_read_back_as_written(data: dict[str, str]) -> None:
    manifest = _env(data)

    applied = apply(None, manifest, Topology(DEPLOYMENT), _author("one"), force=False)

    (manager,) = read(applied)
    assert manager.fields == frozenset(flatten(manifest, Topology(DEPLOYMENT)))
