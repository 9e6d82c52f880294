"""Detection before the upload, from the first bytes of those files that a client sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class SentHeads:
    """An Artifact. `missing` are the paths that were read and whose first bytes were not sent."""

    heads: Mapping[str, bytes]
    sizes: Mapping[str, int]
    missing: set[str] = field(default_factory=set)

    def read(self, path: str, start: int, count: int) -> bytes:
        head = self.heads.get(path, b"")
        if self.sizes[path] and not head:
            self.missing.add(path)
        return head[start : start + count]
