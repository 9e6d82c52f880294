"""Errors of the object store as classes of the portal; the cause stays chained."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from botocore.exceptions import BotoCoreError, ClientError

from portal.core import network_failures


class ArtifactError(Exception):
    """The base of all; the message names the key."""


class ObjectMissing(ArtifactError):
    """An error for an object that does not exist, or not in that version."""


class UploadMissing(ArtifactError):
    """The multipart upload is completed, aborted or was never made."""


class PartsRefused(ArtifactError):
    """The store rejects the parts: one is too small, missing or changed."""


class StoreRefused(ArtifactError):
    """The portal's credentials or bucket are wrong; trying again does not help."""


class StoreUnreachable(ArtifactError):
    """The store did not respond, or asked to retry later."""


class StillAssembling(StoreUnreachable):
    """The parts were sent to be assembled and no answer came: the store may still be at work."""


_BY_CODE: Final[dict[str, type[ArtifactError]]] = {
    "NoSuchKey": ObjectMissing,
    "NoSuchVersion": ObjectMissing,
    "404": ObjectMissing,
    "NoSuchUpload": UploadMissing,
    "InvalidPart": PartsRefused,
    "InvalidPartOrder": PartsRefused,
    "EntityTooSmall": PartsRefused,
    "BadDigest": PartsRefused,
    "NoSuchBucket": StoreRefused,
}


@contextmanager
def translate_errors(key: str) -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        raise _own(error)(f"{key}: {network_failures.describe(error)}") from error
    except BotoCoreError as error:
        raise StoreUnreachable(f"{key}: {network_failures.describe(error)}") from error


def _own(error: ClientError) -> type[ArtifactError]:
    code = str(error.response.get("Error", {}).get("Code", ""))
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    if code in _BY_CODE:
        return _BY_CODE[code]
    is_passing = status >= 500 or status in {0, 408, 429} or code in {"SlowDown", "RequestTimeout"}
    return StoreUnreachable if is_passing else StoreRefused
