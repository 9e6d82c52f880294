"""What one revision writes to a cluster."""

from __future__ import annotations

from typing import Any

from deployments.manifests.domain import revision
from deployments.manifests.domain.metadata import Manifest, ServedRevision
from deployments.spec.domain.serving_spec import ServingSpec
from tests.deployments.manifest_strategies import CONTEXT


def own_objects(engine: str, *, size_mib: int = 100, **data: Any) -> dict[str, Manifest]:
    """The revision's own objects by kind."""
    spec = ServingSpec.from_json({"engine": engine, "instance_type": "g5.xlarge", **data})
    served = ServedRevision(
        1, "detector", "detector:1", "ab" * 32, "s3://b/p/", spec, size_mib=size_mib
    )
    return {manifest["kind"]: manifest for manifest in revision.build_own(CONTEXT, served)}
