"""The base of all responses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A response of the portal. `raw` is the portal's whole answer; two answers are equal when their fields are."""

    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
