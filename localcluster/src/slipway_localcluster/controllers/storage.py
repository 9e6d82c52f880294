"""KServe's storage initializer: copies an S3 prefix into the pod before it starts."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

_ENDPOINT_ANNOTATION = "serving.kserve.io/s3-endpoint"
_REGION_ANNOTATION = "serving.kserve.io/s3-region"
_HTTPS_ANNOTATION = "serving.kserve.io/s3-usehttps"


class StorageFailed(Exception):
    """The models could not be downloaded; the message is the init container's output."""


@dataclass(frozen=True, slots=True)
class S3Settings:
    """Endpoint and credentials of downloads; None leaves a value to boto3's default chain."""

    endpoint_url: str | None = None
    access_key_id: str | None = None
    secret_access_key: str | None = None
    region: str | None = None

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str] = os.environ, *, endpoint_url: str | None = None
    ) -> "S3Settings":
        return cls(
            endpoint_url=endpoint_url or environment.get("SLIPWAY_S3_ENDPOINT_URL") or None,
            access_key_id=environment.get("AWS_ACCESS_KEY_ID") or None,
            secret_access_key=environment.get("AWS_SECRET_ACCESS_KEY") or None,
            region=environment.get("AWS_DEFAULT_REGION") or None,
        )

    def with_secret(
        self, values: Mapping[str, str], annotations: Mapping[str, str]
    ) -> "S3Settings":
        """Override the cluster's settings by a Secret of the pod's service account."""
        endpoint = annotations.get(_ENDPOINT_ANNOTATION)
        if endpoint and "://" not in endpoint:
            scheme = "http" if annotations.get(_HTTPS_ANNOTATION) == "0" else "https"
            endpoint = f"{scheme}://{endpoint}"
        return replace(
            self,
            endpoint_url=endpoint or self.endpoint_url,
            access_key_id=values.get("AWS_ACCESS_KEY_ID") or self.access_key_id,
            secret_access_key=values.get("AWS_SECRET_ACCESS_KEY") or self.secret_access_key,
            region=annotations.get(_REGION_ANNOTATION) or self.region,
        )


def download(uri: str, target: Path, settings: S3Settings) -> int:
    """Copy every object whose key starts with the prefix; return their number.

    As in KServe the prefix is plain text: `.../resnet` also fetches `.../resnet50/`. Zero-byte
    objects and keys that end in "/" are skipped. Archives are not unpacked, unlike there.
    """
    bucket, prefix = split_uri(uri)
    target.mkdir(parents=True, exist_ok=True)
    try:
        files = list(_fetch(_client(settings), bucket, prefix, target))
    except (BotoCoreError, ClientError) as error:
        raise StorageFailed(f"Failed to fetch model from {uri}: {error}") from error
    if not files:
        raise StorageFailed(
            f"Failed to fetch model. No model found in {uri}: the bucket {bucket!r} has no "
            f"object under {prefix!r}."
        )
    return len(files)


def split_uri(uri: str) -> tuple[str, str]:
    scheme, _, rest = uri.partition("://")
    bucket, _, prefix = rest.partition("/")
    if scheme != "s3" or not bucket:
        raise StorageFailed(
            f"Cannot recognize storage type for {uri!r}: the local cluster reads s3:// only."
        )
    return bucket, prefix


def _client(settings: S3Settings) -> Any:
    return boto3.client(
        "s3",
        endpoint_url=settings.endpoint_url,
        aws_access_key_id=settings.access_key_id,
        aws_secret_access_key=settings.secret_access_key,
        region_name=settings.region or "us-east-1",
        config=Config(
            connect_timeout=5,
            read_timeout=30,
            retries={"max_attempts": 2},
            # moto reports the checksum of the parts as that of a copied object.
            response_checksum_validation="when_required",
            s3={"addressing_style": "path" if settings.endpoint_url else "auto"},
        ),
    )


def _fetch(client: Any, bucket: str, prefix: str, target: Path) -> Iterator[Path]:
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        for entry in page.get("Contents", ()):
            key = str(entry["Key"])
            if key.endswith("/") or entry["Size"] == 0:
                continue
            path = _place(target, key, prefix)
            path.parent.mkdir(parents=True, exist_ok=True)
            client.download_file(bucket, key, str(path))
            yield path


def _place(target: Path, key: str, prefix: str) -> Path:
    """Return the path of an object: its key relative to the prefix, or the name of the only object."""
    relative = key.removeprefix(prefix)
    if not relative:
        relative = key.rpartition("/")[2]
    elif not prefix.endswith("/") and not relative.startswith("/"):
        # The prefix ends inside a name, which is the first directory then.
        relative = prefix.rpartition("/")[2] + relative
    parts = PurePosixPath(relative.lstrip("/")).parts
    if ".." in parts:
        raise StorageFailed(f"The key {key!r} leads out of the model directory.")
    return target.joinpath(*parts)
