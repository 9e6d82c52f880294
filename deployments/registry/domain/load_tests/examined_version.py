"""What an examination wrote of a version, kept while its load test runs on a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from deployments.registry.domain.load_tests import results
from deployments.registry.domain.load_tests.results import LoadTest


@dataclass(frozen=True, slots=True, kw_only=True)
class ExaminedVersion:
    """Each field but the sample is the column of a version of that name. Signature, scan, objects and checks are JSON, which
    their own classes read.
    """

    format: str
    sha256: str
    scan: Mapping[str, Any]
    scan_engines: str
    signature: Mapping[str, Any]
    vram_estimate_mib: int
    repository_prefix: str
    config_pbtxt: str
    laid_out: Sequence[Mapping[str, Any]]
    checks: Sequence[Mapping[str, Any]]
    # No column: rows that the load test sends, whose answers are known.
    sample: Mapping[str, Any] | None = None

    def with_load_test(self, loaded: LoadTest | None) -> ExaminedVersion:
        measured = {results.KEY: loaded.to_json()} if loaded else {}
        return replace(self, signature={**self.signature, **measured})

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def columns(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name != "sample"}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> ExaminedVersion:
        """Raises TypeError for other columns."""
        return cls(**raw)
