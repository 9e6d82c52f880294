"""ConfigMaps and Secrets."""

from collections.abc import Iterator

from slipway_localcluster.errors import Cause, JsonObject
from slipway_localcluster.rules.causes import invalid, report_required
from slipway_localcluster.rules.formats import is_content_key

_MOST_BYTES = 1024 * 1024
_TYPED_KEYS = {
    "kubernetes.io/basic-auth": (),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}


def find_config_map_faults(obj: JsonObject) -> Iterator[Cause]:
    data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
    for field, content in (("data", data), ("binaryData", binary)):
        yield from _key_faults(field, content)
    for key in data.keys() & binary.keys():
        yield invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    yield from _size_faults("", {**data, **binary})


def find_secret_faults(obj: JsonObject) -> Iterator[Cause]:
    data = obj.get("data") or {}
    yield from _key_faults("data", data)
    for key in _TYPED_KEYS.get(obj.get("type", "Opaque"), ()):
        if key not in data:
            yield report_required(f"data[{key}]")
    yield from _size_faults("data", data)


def _key_faults(field: str, content: JsonObject) -> Iterator[Cause]:
    for key in content:
        if not is_content_key(key):
            yield invalid(f"{field}[{key}]", key, "a valid key is letters, digits, '-', '_' or '.'")


def _size_faults(field: str, content: JsonObject) -> Iterator[Cause]:
    if sum(len(str(value)) for value in content.values()) > _MOST_BYTES:
        detail = f"Too long: may not be more than {_MOST_BYTES} bytes"
        yield Cause("FieldValueTooLong", detail, field or "[]")
