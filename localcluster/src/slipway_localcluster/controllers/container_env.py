"""The environment of a container: plain values, and those of Secrets, ConfigMaps and fields of its pod."""

import base64
import binascii
import logging
from collections.abc import Callable, Iterator, Mapping

from slipway_localcluster.errors import JsonObject
from slipway_localcluster.kinds import CONFIG_MAP, SECRET, Kind

logger = logging.getLogger(__name__)

# The object of a kind with that name in the pod's namespace; None where there is none.
Find = Callable[[Kind, str], JsonObject | None]
Read = Callable[[JsonObject], Mapping[str, str]]
_KINDS = {"secret": SECRET, "configMap": CONFIG_MAP}


class MissingReference(Exception):
    """A referenced object or key is missing. The message has a kubelet's wording; a kubelet starts the container
    once it exists.
    """


def plain_values(container: JsonObject) -> Mapping[str, str]:
    return {
        item["name"]: str(item["value"])
        for item in container.get("env") or ()
        if item.get("value") is not None
    }


def resolve(pod: JsonObject, container: JsonObject, find: Find) -> Mapping[str, str]:
    """Resolve the environment of a container. `env` wins over `envFrom`. Raises MissingReference."""
    values: dict[str, str] = {}
    for source in container.get("envFrom") or ():
        for name, reference in _references(source, "Ref"):
            prefix = source.get("prefix", "")
            data = _data(pod, name, reference, find) or {}
            values |= {f"{prefix}{key}": value for key, value in data.items()}
    for item in container.get("env") or ():
        value = _value(pod, item, find)
        if value is not None:
            values[item["name"]] = value
    return values


def _value(pod: JsonObject, item: JsonObject, find: Find) -> str | None:
    source = item.get("valueFrom")
    if not source:
        return str(item.get("value") or "")
    if "fieldRef" in source:
        return _field(pod, source["fieldRef"]["fieldPath"])
    for name, reference in _references(source, "KeyRef"):
        data, key = _data(pod, name, reference, find), reference["key"]
        if data is not None and key in data:
            return data[key]
        if data is not None and not reference.get("optional"):
            where = f"{pod['metadata']['namespace']}/{reference['name']}"
            kind = _KINDS[name].kind
            raise MissingReference(f"couldn't find key {key} in {kind} {where}")
    return None


def _references(source: JsonObject, suffix: str) -> Iterator[tuple[str, JsonObject]]:
    for name in _KINDS:
        if f"{name}{suffix}" in source:
            yield name, source[f"{name}{suffix}"]


def _data(
    pod: JsonObject, name: str, reference: JsonObject, find: Find
) -> Mapping[str, str] | None:
    """Return the data of a referenced object. None if it is optional and does not exist. Raises MissingReference."""
    found = find(_KINDS[name], reference["name"])
    if found is None:
        if reference.get("optional"):
            return None
        raise MissingReference(f'{name.lower()} "{reference["name"]}" not found')
    if name == "secret":
        return secret_values(found)
    return dict(found.get("data") or {})


def secret_values(secret: JsonObject) -> dict[str, str]:
    values = {str(key): str(value) for key, value in (secret.get("stringData") or {}).items()}
    for key, value in (secret.get("data") or {}).items():
        try:
            values[key] = base64.b64decode(value).decode()
        except (binascii.Error, UnicodeDecodeError):
            logger.warning("%s of a Secret is not base64 text", key)
    return values


def _field(pod: JsonObject, path: str) -> str:
    """Return a field as the downward API does, by a dotted path or one key of labels or annotations."""
    head, _, key = path.partition("['")
    value: object = pod
    for name in head.split("."):
        value = value.get(name, "") if isinstance(value, dict) else ""
    if key:
        value = value.get(key.removesuffix("']"), "") if isinstance(value, dict) else ""
    return str(value)
