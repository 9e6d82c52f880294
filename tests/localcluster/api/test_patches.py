"""The three patch formats, without a server."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slipway_localcluster.errors import ApiError, JsonObject
from slipway_localcluster.kinds import DEPLOYMENT, NODE, SERVICE
from slipway_localcluster.patches import json_patch, merge_patch, strategic_merge_patch
from slipway_localcluster.topology import Topology

_KEYS = st.sampled_from(["a", "b", "c"])
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.lists(st.integers(0, 2), max_size=2),
    lambda inner: st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=8,
)
_OBJECTS = st.dictionaries(_KEYS, _VALUES, max_size=3)


@given(target=_OBJECTS, patch=_OBJECTS)
def test_merge_patch_twice_is_the_same_as_once(target: JsonObject, patch: JsonObject) -> None:
    once = merge_patch(target, patch)

    assert merge_patch(once, patch) == once


@given(target=_OBJECTS, patch=_OBJECTS)
def test_merge_patch_touches_only_what_it_names(target: JsonObject, patch: JsonObject) -> None:
    merged = merge_patch(target, patch)

    assert {key: value for key, value in merged.items() if key not in patch} == {
        key: value for key, value in target.items() if key not in patch
    }
    assert all(key not in merged for key, value in patch.items() if value is None)


@given(target=_OBJECTS, patch=_OBJECTS)
def test_merge_patch_does_not_change_its_arguments(target: JsonObject, patch: JsonObject) -> None:
    before = repr((target, patch))

    merge_patch(target, patch)

    assert repr((target, patch)) == before


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([{"op": "add", "path": "/a/b", "value": 1}], {"a": {"b": 1}, "l": [1, 2]}),
        ([{"op": "add", "path": "/l/-", "value": 3}], {"a": {}, "l": [1, 2, 3]}),
        ([{"op": "add", "path": "/l/0", "value": 0}], {"a": {}, "l": [0, 1, 2]}),
        ([{"op": "remove", "path": "/l/0"}], {"a": {}, "l": [2]}),
        ([{"op": "replace", "path": "/l/1", "value": 9}], {"a": {}, "l": [1, 9]}),
        ([{"op": "move", "from": "/l", "path": "/a/l"}], {"a": {"l": [1, 2]}}),
        ([{"op": "copy", "from": "/l", "path": "/a/x~1y"}], {"a": {"x/y": [1, 2]}, "l": [1, 2]}),
        ([{"op": "test", "path": "/l/0", "value": 1}], {"a": {}, "l": [1, 2]}),
    ],
)
def test_json_patch_operations(operations: list[JsonObject], expected: JsonObject) -> None:
    assert json_patch({"a": {}, "l": [1, 2]}, operations) == expected


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/nothing"},
        {"op": "replace", "path": "/nothing", "value": 1},
        {"op": "test", "path": "/a", "value": 2},
        {"op": "add", "path": "/l/7", "value": 1},
        {"op": "invent", "path": "/a"},
    ],
)
def test_an_inapplicable_json_patch_is_refused(operation: JsonObject) -> None:
    with pytest.raises(ApiError):
        json_patch({"a": 1, "l": []}, [operation])


def _containers(*containers: JsonObject) -> JsonObject:
    return {"spec": {"template": {"spec": {"containers": list(containers)}}}}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"name": "a", "image": "2"}, [{"name": "a", "image": "2", "env": []}, {"name": "b"}]),
        ({"name": "c"}, [{"name": "a", "image": "1", "env": []}, {"name": "b"}, {"name": "c"}]),
        ({"name": "a", "$patch": "delete"}, [{"name": "b"}]),
        ({"name": "a", "image": None}, [{"name": "a", "env": []}, {"name": "b"}]),
    ],
)
def test_strategic_patch_merges_containers_by_name(change: JsonObject, expected: list[Any]) -> None:
    target = _containers({"name": "a", "image": "1", "env": []}, {"name": "b"})

    patched = strategic_merge_patch(target, _containers(change), Topology(DEPLOYMENT))

    assert patched["spec"]["template"]["spec"]["containers"] == expected


def test_strategic_patch_merges_service_ports_and_node_taints_by_their_keys() -> None:
    ports = {"spec": {"ports": [{"port": 80, "name": "http"}]}}
    taints = {"spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}}

    service = strategic_merge_patch(
        ports, {"spec": {"ports": [{"port": 80, "targetPort": 8080}]}}, Topology(SERVICE)
    )
    node = strategic_merge_patch(
        taints, {"spec": {"taints": [{"key": "x", "effect": "NoExecute"}]}}, Topology(NODE)
    )

    assert service["spec"]["ports"] == [{"port": 80, "name": "http", "targetPort": 8080}]
    assert [taint["key"] for taint in node["spec"]["taints"]] == ["gpu", "x"]


def test_strategic_patch_replaces_lists_without_a_key() -> None:
    target = _containers({"name": "a", "args": ["one", "two"]})

    patched = strategic_merge_patch(
        target, _containers({"name": "a", "args": ["three"]}), Topology(DEPLOYMENT)
    )

    assert patched == _containers({"name": "a", "args": ["three"]})
