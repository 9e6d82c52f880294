"""Digests of content: the same content always has the same digest."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def digest_of(content: Any) -> str:
    """Return the SHA-256 of the content as canonical JSON."""
    plain = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(plain.encode()).hexdigest()
