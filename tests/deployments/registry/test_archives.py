"""Archives are unpacked by the worker as a stream; what is not safe to unpack is refused."""

from __future__ import annotations

import gzip
import hashlib
import io
import stat
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from deployments.models import ModelVersion
from deployments.registry.domain import object_keys
from deployments.registry.domain.artifacts import archives
from deployments.registry.gateways import object_store
from deployments.registry.gateways.object_store import S3Store
from deployments.registry.services import verification
from deployments.registry.services.examination import archive_unpacking
from deployments.states import VersionState
from portal.core import clock
from portal.core.errors import Conflict
from tests.artifacts import MemoryArtifact
from tests.deployments import onnx_models
from tests.deployments.crashing_store import CrashingStore, Death, worth_dying_at
from tests.deployments.uploading import People, Upload, versions_in

pytestmark = pytest.mark.django_db
MIB = 2**20
Pack = Callable[[Mapping[str, bytes]], bytes]


def zipped(contents: Mapping[str, bytes]) -> bytes:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as archive:
        for path, content in contents.items():
            archive.writestr(path, content, zipfile.ZIP_DEFLATED)
    return body.getvalue()


def tarred(contents: Mapping[str, bytes]) -> bytes:
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w") as archive:
        for path, content in contents.items():
            info = tarfile.TarInfo(path)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return body.getvalue()


def gzipped(contents: Mapping[str, bytes]) -> bytes:
    return gzip.compress(tarred(contents))


PACKS: dict[str, Pack] = {"model.zip": zipped, "model.tar": tarred, "model.tar.gz": gzipped}


@pytest.mark.parametrize("filename", PACKS)
def test_an_archive_becomes_the_files_that_it_contains(
    filename: str, verified: Upload, s3_store: S3Store
) -> None:
    model = onnx_models.linear()
    body = PACKS[filename](
        {"detector/1/model.onnx": model, "__MACOSX/._a": b"x", "detector/.DS_Store": b"x"}
    )

    version = verified(body, filename=filename, head=body[:4096])

    assert (version.state, version.state_reason) == (VersionState.READY, "")
    file = version.files.get()
    assert (file.path, file.size_bytes) == ("model.onnx", len(model))
    assert version.sha256 == file.sha256 == hashlib.sha256(model).hexdigest()
    assert version.archive_sha256 == hashlib.sha256(body).hexdigest()
    assert version.size_bytes == version.declared_size_bytes == len(model)
    assert version.filename == filename
    assert b"".join(s3_store.read(file.key, file.s3_version_id)) == model
    uploads = [key for key in versions_in(s3_store) if key.startswith("uploads/")]
    assert uploads == [file.key]
    details = {row["name"]: row["detail"] for row in version.checks}
    assert details["Format"] == "ONNX, detected from its content, unpacked from the archive"


def test_the_same_archive_again_is_refused_before_it_is_sent(
    verified: Upload, upload: Upload
) -> None:
    body = zipped({"model.onnx": onnx_models.linear()})
    sha256 = hashlib.sha256(body).hexdigest()
    verified(body, filename="model.zip")

    with pytest.raises(Conflict, match="already version 1") as refusal:
        upload(body, filename="again.zip", sha256=sha256)

    assert refusal.value.code == "same_bytes"


def _link_in_zip() -> bytes:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as archive:
        info = zipfile.ZipInfo("model.onnx")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    return body.getvalue()


def _in_tar(kind: bytes, name: str = "model.onnx", target: str = "/etc/passwd") -> bytes:
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w") as archive:
        info = tarfile.TarInfo(name)
        info.type, info.linkname = kind, target
        archive.addfile(info)
    return body.getvalue()


def _encrypted() -> bytes:
    body = bytearray(zipped({"model.onnx": b"x" * 100}))
    # The flags of the local header and of the central directory.
    body[6] |= 1
    body[body.index(b"PK\x01\x02") + 8] |= 1
    return bytes(body)


def _twice() -> bytes:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as archive:
        archive.writestr("model.onnx", b"a")
        archive.writestr("modem.onnx", b"b")
    return body.getvalue().replace(b"modem", b"model")


UNSAFE: dict[str, tuple[bytes, str]] = {
    "parent": (zipped({"../model.onnx": b"x"}), "no '..'"),
    "parent in tar": (tarred({"a/../../model.onnx": b"x"}), "no '..'"),
    "absolute": (tarred({"/etc/cron.d/job": b"x"}), "not relative"),
    "backslash": (zipped({"..\\model.onnx": b"x"}), "not relative"),
    "link in zip": (_link_in_zip(), "is a link"),
    "symbolic link": (_in_tar(tarfile.SYMTYPE), "is a link or a device"),
    "hard link": (_in_tar(tarfile.LNKTYPE), "is a link or a device"),
    "device": (_in_tar(tarfile.CHRTYPE), "is a link or a device"),
    "encrypted": (_encrypted(), "is encrypted"),
    "twice": (_twice(), "model.onnx appears twice"),
    "case": (zipped({"a.onnx": b"x", "A.onnx": b"x"}), "same name"),
    "too many": (zipped({f"{n}.bin": b"" for n in range(2001)}), "more than 2,000 files"),
    "no files": (tarred({"__MACOSX/a": b"x"}), "contains no files"),
    "truncated zip member": (zipped({"a.bin": bytes(10**5)}).replace(b"\0\0\0", b"\0\1\0"), ""),
    "truncated tar": (tarred({"a.bin": bytes(10**5)})[:50_000], "damaged"),
    "truncated gzip": (gzipped({"a.bin": bytes(range(256)) * 99})[:-400], "damaged"),
}

# A zip file has a directory, so that nothing of an unsafe one needs to be written first.
SEEN_IN_THE_DIRECTORY = {
    "parent",
    "backslash",
    "link in zip",
    "encrypted",
    "twice",
    "case",
    "too many",
}


@pytest.mark.parametrize("case", UNSAFE)
def test_what_is_not_safe_to_unpack_is_refused_and_leaves_nothing(
    case: str, verified: Upload, s3_store: S3Store
) -> None:
    body, message = UNSAFE[case]

    version = verified(body, filename="model.zip")

    assert version.state in {VersionState.FAILED, VersionState.QUARANTINED}
    assert message in version.state_reason
    if case in SEEN_IN_THE_DIRECTORY:
        assert len(versions_in(s3_store)) == 1, "only the archive: no file of it was written"
    if version.state == VersionState.FAILED:
        verification.advance(version.pk)
        assert versions_in(s3_store) == []


def test_a_bomb_stops_at_its_limit(
    verified: Upload, s3_store: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_unpacking, "_GIB", 64 * MIB)
    bomb = zipped({f"{n}.bin": bytes(40 * MIB) for n in range(4)})
    assert len(bomb) < MIB

    version = verified(bomb, filename="bomb.zip")

    assert version.state == VersionState.FAILED
    assert "unpacks to more than" in version.state_reason
    verification.advance(version.pk)
    assert versions_in(s3_store) == []


def test_what_does_not_fit_into_the_team_is_refused(verified: Upload, settings: Any) -> None:
    settings.SLIPWAY_TEAM_STORAGE_BYTES = 2 * MIB

    version = verified(zipped({"a.bin": bytes(3 * MIB)}), filename="a.zip")

    assert version.state == VersionState.FAILED
    assert "what the team has left" in version.state_reason


@pytest.mark.parametrize(
    ("contents", "is_additional"),
    [
        ({"archive/data.pkl": b"", "archive/version": b""}, False),
        ({"m/constants.pkl": b"", "m/code/__torch__.py": b""}, False),
        ({"config.json": b"", "model.weights.h5": b""}, False),
        ({"a.npy": b"", "b.npy": b""}, False),
        ({"MAR-INF/MANIFEST.json": b"", "model.py": b""}, False),
        ({"model.onnx": b""}, True),
        ({"pre/config.pbtxt": b"", "pre/1/model.py": b""}, True),
    ],
)
def test_a_model_that_is_a_zip_file_is_not_unpacked(
    contents: Mapping[str, bytes], is_additional: bool
) -> None:
    body = zipped(contents)
    artifact = MemoryArtifact({"m": body}, {"m": len(body)})

    assert archives.is_additional({"main": "m"}, artifact) is is_additional


def test_a_worker_that_dies_at_any_call_unpacks_it_in_the_end(
    upload: Upload, people: People, s3_store: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = zipped({"a/model.onnx": onnx_models.linear()})
    # The bytes of a version that is ready need not be read again, so that the first one differs.
    verification.advance(upload(body, filename="model.zip", model="first").pk)
    undisturbed = upload(body, filename="model.zip", model="whole")
    whole = CrashingStore(s3_store, at_call=0, is_after=True)
    with monkeypatch.context() as patched:
        patched.setattr(object_store, "store", lambda: whole)
        verification.advance(undisturbed.pk)
    numbers = worth_dying_at(whole.calls)
    assert {"put", "delete_all_versions", "head", "read_range", "abort_uploads"} <= set(whole.calls)

    for number in numbers:
        died_at = f"after {whole.calls[number - 1]}, call {number}"
        version = upload(body, filename="model.zip", model=f"m{number}")
        store = CrashingStore(s3_store, at_call=number, is_after=True)
        with monkeypatch.context() as patched:
            patched.setattr(object_store, "store", lambda store=store: store)
            with pytest.raises(Death):
                verification.advance(version.pk)
        ModelVersion.objects.filter(pk=version.pk).update(
            lease_until=None, next_check_at=clock.now()
        )
        verification.advance(version.pk)
        version.refresh_from_db()
        assert (version.state, version.state_reason) == (VersionState.READY, ""), died_at
        root = object_keys.upload_root(version.upload_prefix)
        assert s3_store.list_keys(root) == [version.files.get().key], died_at
