"""The environment of a container, from Secrets, ConfigMaps and fields of its pod."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from slipway_localcluster.controllers import container_env
from slipway_localcluster.controllers.container_env import MissingReference
from slipway_localcluster.kinds import CONFIG_MAP, SECRET, Kind

_POD = {
    "metadata": {"name": "a", "namespace": "team", "uid": "u", "labels": {"app.x/role": "server"}},
    "spec": {"nodeName": "node-1", "serviceAccountName": "models"},
    "status": {"podIP": "10.244.0.7"},
}
_OBJECTS = {
    (SECRET, "keys"): {"data": {"token": base64.b64encode(b"hunter2").decode()}},
    (CONFIG_MAP, "settings"): {"data": {"MODE": "fast", "LEVEL": "3"}},
}


def find(kind: Kind, name: str) -> Any:
    return _OBJECTS.get((kind, name))


def value_from(**source: Any) -> dict[str, Any]:
    return {"name": "A", "valueFrom": source}


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ({"name": "A", "value": "plain"}, "plain"),
        ({"name": "A"}, ""),
        (value_from(secretKeyRef={"name": "keys", "key": "token"}), "hunter2"),
        (value_from(configMapKeyRef={"name": "settings", "key": "MODE"}), "fast"),
        (value_from(fieldRef={"fieldPath": "metadata.namespace"}), "team"),
        (value_from(fieldRef={"fieldPath": "metadata.labels['app.x/role']"}), "server"),
        (value_from(fieldRef={"fieldPath": "metadata.annotations['none']"}), ""),
        (value_from(fieldRef={"fieldPath": "spec.nodeName"}), "node-1"),
        (value_from(fieldRef={"fieldPath": "status.podIP"}), "10.244.0.7"),
    ],
)
def test_a_value_is_that_of_its_source(item: dict[str, Any], expected: str) -> None:
    assert container_env.resolve(_POD, {"env": [item]}, find) == {"A": expected}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"secretKeyRef": {"name": "none", "key": "a"}}, 'secret "none" not found'),
        ({"configMapKeyRef": {"name": "none", "key": "a"}}, 'configmap "none" not found'),
        (
            {"secretKeyRef": {"name": "keys", "key": "none"}},
            "couldn't find key none in Secret team/keys",
        ),
    ],
)
def test_what_is_missing_is_named_unless_it_is_optional(
    source: dict[str, Any], message: str
) -> None:
    optional = {kind: {**reference, "optional": True} for kind, reference in source.items()}

    with pytest.raises(MissingReference, match=message):
        container_env.resolve(_POD, {"env": [value_from(**source)]}, find)

    assert container_env.resolve(_POD, {"env": [value_from(**optional)]}, find) == {}


def test_all_keys_of_a_source_come_with_its_prefix_and_env_wins() -> None:
    container = {
        "envFrom": [
            {"configMapRef": {"name": "settings"}, "prefix": "X_"},
            {"secretRef": {"name": "keys"}},
            {"secretRef": {"name": "none", "optional": True}},
        ],
        "env": [{"name": "X_LEVEL", "value": "5"}],
    }

    assert container_env.resolve(_POD, container, find) == {
        "X_MODE": "fast",
        "X_LEVEL": "5",
        "token": "hunter2",
    }


def test_a_missing_source_of_all_keys_is_named() -> None:
    container = {"envFrom": [{"secretRef": {"name": "none"}}]}

    with pytest.raises(MissingReference, match='secret "none" not found'):
        container_env.resolve(_POD, container, find)
