"""The record of what lies in the bucket for a version, as verification writes it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from deployments.registry.domain.serving_objects import ServingObject


def rows_of(
    store: Any, prefix: str, *, digest: Callable[[Any], str] | None = None
) -> list[dict[str, Any]]:
    """`digest` says the SHA-256 of an object where the store holds no bytes."""

    def read(one: Any) -> str:
        return hashlib.sha256(b"".join(store.read(one.key, one.version_id))).hexdigest()

    return [
        ServingObject(
            stored.key, stored.version_id, stored.etag, stored.size_bytes, (digest or read)(stored)
        ).to_json()
        for stored in store.list_newest(prefix)
    ]
