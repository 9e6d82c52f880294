"""The digest of what a form shows before there is a change request."""

from __future__ import annotations

from deployments.manifests.domain.metadata import ManifestContext, ServedRevision, digest_of
from deployments.manifests.selectors import rendering
from deployments.models import ModelVersion


def for_draft(context: ManifestContext, served: ServedRevision, version: ModelVersion) -> str:
    """What a form shows before there is a change request: same content, no deployment row yet."""
    manifests = rendering.manifests_for(context, served)
    return digest_of({"manifests": manifests, "version": identity_of(version)})


def identity_of(version: ModelVersion) -> list[str]:
    if version.source_uri:
        return [version.source_uri]
    return [version.bucket, version.key, version.s3_version_id, version.sha256]
