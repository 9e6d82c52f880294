"""A request that is passed on to one pod, and what the pod itself answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

MOST_ANSWER_BYTES: Final = 2_000_000


@dataclass(frozen=True, slots=True)
class PodRequest:
    """POST with a body, GET without. A body is JSON unless `headers` say otherwise."""

    namespace: str
    pod: str
    port: int
    path: str
    body: bytes | None = None
    seconds: float = 10.0
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def method(self) -> str:
        return "GET" if self.body is None else "POST"

    @property
    def api_path(self) -> str:
        """The path at the API server."""
        base = f"/api/v1/namespaces/{quote(self.namespace)}/pods/{quote(self.pod)}:{self.port}"
        return f"{base}/proxy/{self.path.lstrip('/')}"


@dataclass(frozen=True, slots=True)
class PodResponse:
    """Any status: the pod's own refusal is an answer too. `is_cut`: the body was longer."""

    status: int
    body: bytes
    is_cut: bool = False
