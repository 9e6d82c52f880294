"""S3 object tags: they say to whom a stored object belongs, for lifecycle rules, costs and people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from botocore.exceptions import ClientError

from deployments.registry.gateways.object_store_errors import ArtifactError, translate_errors
from deployments.registry.gateways.object_store_types import StoredObject

_UNSUPPORTED_STATUSES: Final = (405, 501)


def write(client: Any, bucket: str, item: StoredObject, tags: Mapping[str, str]) -> bool:
    """Replace the tags of exactly this VersionId. False if the store has no tags."""
    rows = [{"Key": key, "Value": value} for key, value in tags.items()]
    try:
        with translate_errors(item.key):
            client.put_object_tagging(
                Bucket=bucket, Key=item.key, VersionId=item.version_id, Tagging={"TagSet": rows}
            )
    except ArtifactError as error:
        if _is_unsupported(error):
            return False
        raise
    return True


def _is_unsupported(error: ArtifactError) -> bool:
    cause = error.__cause__
    if not isinstance(cause, ClientError):
        return False
    status = cause.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    return status in _UNSUPPORTED_STATUSES
