"""Downloads from S3, and the messages of failed ones."""

from pathlib import Path

import boto3
import pytest

from slipway_localcluster.controllers import storage
from slipway_localcluster.controllers.storage import S3Settings, StorageFailed
from tests.localcluster.controllers.running import BUCKET


@pytest.fixture(scope="module")
def filled(s3: S3Settings) -> S3Settings:
    client = boto3.client(
        "s3",
        endpoint_url=s3.endpoint_url,
        aws_access_key_id=s3.access_key_id,
        aws_secret_access_key=s3.secret_access_key,
        region_name=s3.region,
    )
    for key, body in {
        "t/resnet/1/model.onnx": b"a",
        "t/resnet/1/empty": b"",
        "t/resnet/1/": b"",
        "t/resnet50/1/model.onnx": b"b",
    }.items():
        client.put_object(Bucket=BUCKET, Key=key, Body=body)
    return s3


def _files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def test_a_prefix_with_a_slash_fetches_only_its_own_objects(
    filled: S3Settings, tmp_path: Path
) -> None:
    count = storage.download(f"s3://{BUCKET}/t/resnet/", tmp_path, filled)

    assert count == 1
    assert _files(tmp_path) == ["1/model.onnx"]


def test_a_prefix_without_a_slash_matches_as_plain_text(filled: S3Settings, tmp_path: Path) -> None:
    count = storage.download(f"s3://{BUCKET}/t/resnet", tmp_path, filled)

    assert count == 2
    assert len(_files(tmp_path)) == 2


def test_one_object_keeps_its_name(filled: S3Settings, tmp_path: Path) -> None:
    storage.download(f"s3://{BUCKET}/t/resnet/1/model.onnx", tmp_path, filled)

    assert _files(tmp_path) == ["model.onnx"]


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        (f"s3://{BUCKET}/nowhere/", "No model found in s3://models/nowhere/"),
        ("s3://no-such-bucket/x/", "NoSuchBucket"),
        ("gs://bucket/x/", "Cannot recognize storage type"),
    ],
)
def test_failures_name_the_uri(filled: S3Settings, tmp_path: Path, uri: str, message: str) -> None:
    with pytest.raises(StorageFailed, match=message):
        storage.download(uri, tmp_path, filled)

    assert _files(tmp_path) == []


def test_a_secret_overrides_the_clusters_settings() -> None:
    own = S3Settings("http://cluster", "a", "b", "us-east-1")

    merged = own.with_secret(
        {"AWS_ACCESS_KEY_ID": "c", "AWS_SECRET_ACCESS_KEY": "d"},
        {
            "serving.kserve.io/s3-endpoint": "127.0.0.1:9000",
            "serving.kserve.io/s3-usehttps": "0",
            "serving.kserve.io/s3-region": "eu-west-1",
        },
    )

    assert merged == S3Settings("http://127.0.0.1:9000", "c", "d", "eu-west-1")
