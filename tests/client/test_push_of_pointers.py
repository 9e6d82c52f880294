"""A push tells that files are pointers of Git LFS before it sends, or even digests, anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from deployments.models import ModelVersion
from slipway_client import InvalidInput
from slipway_client.uploads import git_lfs, local_files
from tests.client.pushing import Store, client_with
from tests.deployments.uploading import People

POINTER = (
    b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"d6" * 32 + b"\nsize 26454\n"
)


def folder(path: Path, contents: dict[str, bytes]) -> Path:
    for name, body in contents.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(body)
    return path


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        ({"m.onnx": POINTER}, "m.onnx is a Git LFS pointer"),
        ({"m.onnx": POINTER, "labels.txt": b"a"}, "m.onnx is a Git LFS pointer"),
        (
            {"config.json": b"{}", "a.safetensors": POINTER, "b.safetensors": POINTER},
            "a.safetensors and 1 more are Git LFS pointers",
        ),
    ],
)
def test_nothing_is_sent(
    people: People, tmp_path: Path, contents: dict[str, bytes], message: str
) -> None:
    store = Store()
    client = client_with(people, store)

    with pytest.raises(InvalidInput, match=f"{message}.*git lfs pull"):
        client.push(folder(tmp_path, contents), "vision/detector")

    assert not store.sent
    assert not ModelVersion.objects.exists()


@pytest.mark.parametrize(
    "contents",
    [
        {"m.onnx": b"\x08\x08\x12\x00" + bytes(200)},
        # The portal knows which files a server reads.
        {"config.json": b"{}", "a.safetensors": bytes(2000), "pytorch_model.bin": POINTER},
        {"labels.txt": b"version 3"},
    ],
)
def test_other_folders_are_left_to_the_portal(tmp_path: Path, contents: dict[str, bytes]) -> None:
    git_lfs.refuse_pointers(local_files.collect(folder(tmp_path, contents)))
