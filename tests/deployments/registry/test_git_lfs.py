"""A pointer of Git LFS is named as what it is wherever a file comes in, unless no server would read it."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.registry.domain.artifacts import files
from deployments.registry.domain.formats import catalogue
from deployments.registry.domain.hugging_face import reading
from deployments.registry.domain.not_servable import NotServable
from deployments.states import VersionState
from tests.artifacts import MemoryArtifact
from tests.deployments import onnx_models
from tests.deployments.registry.test_hugging_face import artifact_of
from tests.deployments.uploading import Upload
from tests.fixtures import language_models as folders
from tests.fixtures import triton_repositories as repositories

ADDRESSES = (
    "https://git-lfs.github.com/spec/v1",
    "https://hawser.github.com/spec/v1",
    "http://git-media.io/v/2",
)


def pointer(size: int = 26454, address: str = ADDRESSES[0], extension: str = "") -> bytes:
    return f"version {address}\n{extension}oid sha256:{'d6' * 32}\nsize {size}\n".encode()


POINTER = pointer()


def detect(contents: dict[str, bytes]) -> catalogue.Detected:
    return catalogue.detect(
        MemoryArtifact(contents, {path: len(body) for path, body in contents.items()})
    )


@given(
    name=st.sampled_from(["m.onnx", "m.pt", "model.safetensors", "m.pkl", "m.json", "m.zip", "m"]),
    size=st.integers(0, 2**50),
    address=st.sampled_from(ADDRESSES),
    extension=st.sampled_from(["", f"ext-0-clean sha256:{'a' * 64}\n"]),
    bom=st.sampled_from([b"", b"\xef\xbb\xbf"]),
    is_windows=st.booleans(),
)
def test_one_file_is_named_whatever_it_is_called(
    name: str, size: int, address: str, extension: str, bom: bytes, is_windows: bool
) -> None:
    body = bom + pointer(size, address, extension)
    if is_windows:
        body = body.replace(b"\n", b"\r\n")

    detected = detect({name: body})

    assert detected.describe_refusal(name) == (
        f"{name} is a Git LFS pointer, not the model. Get the file itself with git lfs pull in the clone, and "
        "upload it again."
    )


@pytest.mark.parametrize(
    ("contents", "path"),
    [
        ({"model.onnx": POINTER, "README.md": b"x"}, "model.onnx"),
        ({"net/model.onnx": onnx_models.linear(), "net/weights.bin": POINTER}, "net/weights.bin"),
        ({"m/config.pbtxt": b"", "m/1/model.onnx": POINTER}, "m/1/model.onnx"),
        ({**folders.folder(), "chat/model.safetensors": POINTER}, "chat/model.safetensors"),
        ({"bert/config.json": b"{}", "bert/pytorch_model.bin": POINTER}, "bert/pytorch_model.bin"),
        ({"saved_model.pb": POINTER, "variables/variables.index": b"x"}, "saved_model.pb"),
    ],
)
def test_a_file_of_a_folder_is_named(contents: dict[str, bytes], path: str) -> None:
    detected = detect(contents)

    name = files.display_name(list(contents))
    assert detected.describe_refusal(name).startswith(f"{path} in {name} is a Git LFS pointer")


@pytest.mark.parametrize(
    ("contents", "key"),
    [
        ({"model.onnx": onnx_models.linear(), "figure.png": POINTER}, "onnx"),
        ({**folders.folder(), "chat/pytorch_model.bin": POINTER}, "hugging_face"),
        ({**folders.folder(), "chat/consolidated.safetensors": POINTER}, "hugging_face"),
        ({**folders.folder(), "chat/onnx/model.onnx": POINTER}, "hugging_face"),
        ({"m.txt": b"version https://git-lfs.example.com/spec/v1\n"}, "unknown"),
        ({"m.txt": POINTER + bytes(1024)}, "unknown"),
    ],
)
def test_what_needs_no_pointer_stays_what_it_is(contents: dict[str, bytes], key: str) -> None:
    detected = detect(contents)

    assert detected.format.key == key
    if key == "hugging_face":
        assert reading.read({"main": detected.main}, artifact_of(contents))["parameters"]


@pytest.mark.parametrize(
    "name", ["model-00002-of-00002.safetensors", "tokenizer.json", "tokenizer.model"]
)
def test_a_pointer_that_a_server_would_read_is_refused(name: str) -> None:
    contents = {**folders.folder(shards=2), f"chat/{name}": POINTER}
    detected = detect(contents)

    with pytest.raises(NotServable, match=f"chat/{name} is a Git LFS pointer.*git lfs pull"):
        reading.read({"main": detected.main}, artifact_of(contents))


def _zipped(contents: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, body in contents.items():
            archive.writestr(name, body)
    return buffer.getvalue()


@pytest.mark.django_db
@pytest.mark.parametrize(
    "content",
    [
        POINTER,
        {**repositories.ensemble(), next(iter(repositories.ensemble())): POINTER},
        _zipped({"net/model.onnx": POINTER, "net/labels.txt": b"a"}),
    ],
    ids=["file", "folder", "archive"],
)
def test_a_version_fails_with_the_way_out(
    verified: Upload, content: bytes | dict[str, bytes], tmp_path: Path
) -> None:
    version = verified(content, model="pointed")

    assert version.state == VersionState.FAILED
    assert "a Git LFS pointer, not the model" in version.state_reason
    assert "git lfs pull" in version.state_reason
