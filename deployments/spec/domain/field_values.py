"""Fields of a serving spec as people read them: one line for each setting, no values of Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

_NAMES: Final = {
    "cpu": "CPU",
    "env": "environment",
    "gpu": "GPU",
    "gpus": "GPUs",
    "id": "ID",
    "kv": "KV",
    "llm": "language model",
    "mtls": "mTLS",
    "sha256": "SHA-256",
    "shm": "shared memory",
    "sqs": "SQS",
    "url": "URL",
    "us": "(µs)",
    "seconds": "(seconds)",
    "millions": "(millions)",
}
_VERBS: Final = ("is", "can", "has")
_PAIRS: Final = ("env",)


def flatten(fields: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Dotted names to text. What is not set is left empty."""
    return dict(_lines(fields, prefix))


def describe_field(name: str) -> str:
    """ "scaling.can_scale_to_zero" is "Scaling: scale to zero"."""
    parts = [_describe_part(part) for part in name.split(".")]
    label = ": ".join(parts)
    return label[:1].upper() + label[1:]


def format_value(value: Any) -> str:
    if value is None or value == "":
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Mapping):
        return ", ".join(_pair(str(key), one) for key, one in sorted(value.items()))
    if isinstance(value, list | tuple):
        return ", ".join(format_value(one) for one in value)
    return str(value)


def _lines(fields: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    for key, value in fields.items():
        name = f"{prefix}{key}"
        if key in _PAIRS and isinstance(value, Mapping):
            yield name, ", ".join(f"{one}={value[one]}" for one in sorted(value))
        elif isinstance(value, Mapping):
            yield from _lines(value, f"{name}.")
        elif isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
            yield from _items(value, name)
        else:
            yield name, format_value(value)


def _items(values: list[Mapping[str, Any]], name: str) -> Iterator[tuple[str, str]]:
    """Further models are named as people name versions; other parts are counted."""
    for number, one in enumerate(values, start=1):
        rest = dict(one)
        if "model" in rest and "version" in rest:
            yield f"{name}.{number}", f"{rest.pop('model')}:{rest.pop('version')}"
        yield from _lines(rest, f"{name}.{number}.")


def _pair(key: str, value: Any) -> str:
    return f"{_describe_part(key)} {format_value(value)}".strip()


def _describe_part(part: str) -> str:
    words = part.split("_")
    if words[0] in _VERBS and len(words) > 1:
        words = words[1:]
    return " ".join(_NAMES.get(word, word) for word in words)
