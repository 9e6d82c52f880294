"""The columns that an examination wrote for a version, kept while its load test runs on a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from deployments.registry.domain.load_tests import results
from deployments.registry.domain.load_tests.results import LoadTest

SAMPLE: Final = "sample"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExaminedVersion:
    """The columns of an examined version; each field has the name of its column. Signature, scan, objects and
    checks are JSON, which their own classes read.
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

    def with_load_test(self, loaded: LoadTest | None) -> ExaminedVersion:
        measured = {results.KEY: loaded.to_json()} if loaded else {}
        return replace(self, signature={**self.signature, **measured})

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def sample(self) -> Mapping[str, Any] | None:
        """The rows for the load test whose answers are known. They wait in the signature, and are not kept."""
        return self.signature.get(SAMPLE)

    def columns(self) -> dict[str, Any]:
        signature = {name: value for name, value in self.signature.items() if name != SAMPLE}
        return {**asdict(self), "signature": signature}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> ExaminedVersion:
        """Read the stored columns. Raises TypeError for others."""
        return cls(**raw)
