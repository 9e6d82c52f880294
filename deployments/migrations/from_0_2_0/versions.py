"""The metadata and declarations of versions, and the files of their uploads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]
TEXTS = (
    *("dataset_version", "trained_at", "framework", "commit", "run_url"),
    *("licence", "intended_use", "notes"),
)
_SIZES = ("parameters_millions", "dtype", "context_length")
_LABEL_LENGTH = 200
_DECLARED = {"takes_batches": "supports_batching", "largest_batch": "max_batch_size"}


def convert_metadata(metadata: Mapping[str, Any], *, is_reference: bool) -> Json:
    """Convert metadata: numbers are metrics, short texts, truth values and tags are labels. What no label can have goes
    to the notes: a text that is too long, and a further value of one key.
    """
    converted: Json = {}
    metrics: dict[str, int | float] = {}
    labels: dict[str, str] = {}
    notes: list[str] = []

    def add_label(key: str, value: str, text: str) -> None:
        if labels.setdefault(key, value) != value:
            notes.append(text)

    for key, value in metadata.items():
        if key in TEXTS or (is_reference and key in _SIZES):
            converted[key] = value
        elif key == "tags":
            for tag in value:
                add_label(*_label_of_tag(tag), text=tag)
        elif isinstance(value, bool):
            add_label(_label_key(key), "true" if value else "false", f"{key}: {value}")
        elif isinstance(value, int | float):
            metrics[key] = value
        elif len(value) <= _LABEL_LENGTH and value.isprintable():
            add_label(_label_key(key), value, f"{key}: {value}")
        else:
            notes.append(f"{key}: {value}")
    if notes:
        converted["notes"] = "\n".join([*filter(None, [converted.get("notes", "")]), *notes])
    return {
        **converted,
        **({"metrics": metrics} if metrics else {}),
        **({"labels": labels} if labels else {}),
    }


def convert_declared(declared: Mapping[str, Any]) -> Json:
    """Convert a declaration; {} declares nothing."""
    return {_DECLARED.get(name, name): value for name, value in declared.items()}


def convert_former(former: Mapping[str, Any]) -> Json:
    """Convert the verification before the present one; {} is none."""
    return {**former, "declared": convert_declared(former["declared"])} if former else {}


def split_key(key: str) -> tuple[str, str]:
    """Split the key of an uploaded object into the prefix of the upload, with its "/", and the path of the file."""
    prefix, slash, path = key.rpartition("/")
    return prefix + slash, path


def _label_key(key: str) -> str:
    return re.sub(r"[^\w./-]", "-", key, flags=re.ASCII).strip("_./-")[:63].rstrip("_./-") or "tag"


def _label_of_tag(tag: str) -> tuple[str, str]:
    """A tag such as team=vision has a value, others have none."""
    key, _, value = tag.partition("=")
    return _label_key(key), value
