"""Artifacts of several files: their paths, their identity, and reading them in ranges."""

from __future__ import annotations

import hashlib
import io
import subprocess
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.models import ModelVersion
from deployments.registry.domain.artifacts import files
from deployments.registry.domain.artifacts.reading import open_file
from deployments.registry.gateways import sandbox
from deployments.registry.gateways.object_store import S3Store
from deployments.registry.gateways.sandbox import Broken, Finished, SandboxLimits
from deployments.registry.gateways.sandbox_artifact import Access
from deployments.registry.services import uploads, verification
from deployments.registry.services.examination import stored_files
from deployments.registry.services.examination.checklist import Checklist
from deployments.registry.services.upload_validation import DraftFile, UploadDraft
from deployments.states import VersionState
from portal.core.errors import Conflict, Invalid
from tests.artifacts import LocalArtifact, MemoryArtifact
from tests.deployments.crashing_store import Death
from tests.deployments.uploading import People, Upload, send_parts, versions_in

TASKS = "tests.deployments.registry.sandbox_tasks"
LIMITS = SandboxLimits(memory_bytes=2**30, cpu_seconds=20, wall_seconds=60)


def test_the_identity_of_a_folder_is_what_sha256sum_says(tmp_path: Path) -> None:
    contents = {"config.json": b"{}", "1/model.bin": b"\0" * 9, "1/é.txt": b"text", "B": b"b"}
    for path, content in contents.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(content)
    command = "find . -type f -printf '%P\\n' | LC_ALL=C sort | xargs sha256sum | tee /dev/stderr | sha256sum"
    printed = subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    sums = {line[66:]: line[:64] for line in printed.stderr.splitlines()}

    assert sums.keys() == contents.keys()
    assert files.identity(sums) == printed.stdout[:64]
    assert files.identity({"any.onnx": sums["B"]}) == sums["B"]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", "Enter the path"),
        ("../a", "not relative"),
        ("a/../../b", "not relative"),
        ("/etc/passwd", "not relative"),
        ("a//b", "not relative"),
        ("a/./b", "not relative"),
        ("a\\b", "not relative"),
        ("a\nb", "control character"),
        ("a/\0", "control character"),
        ("a/" * 300 + "b", "longer than 512 bytes"),
        ("é" * 150, "longer than 200 bytes"),
    ],
)
def test_a_path_that_leaves_the_folder_is_refused(path: str, message: str) -> None:
    assert message in files.path_problem(path)


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        ([], "at least one file"),
        (["a"] * 2, "a appears twice"),
        (["Model.onnx", "model.ONNX"], "same name"),
        (["a", "a/b"], "a file and a folder"),
        (["A/B/c", "a/b"], "a file and a folder"),
        ([str(n) for n in range(2001)], "at most 2,000 files"),
    ],
)
def test_paths_that_cannot_stand_side_by_side_are_refused(paths: list[str], message: str) -> None:
    assert message in files.listing_problem(paths)


@given(st.binary(max_size=300), st.integers(0, 310), st.integers(0, 310))
def test_ranges_are_slices(content: bytes, start: int, count: int) -> None:
    artifact = MemoryArtifact({"a": content}, {"a": len(content)})

    assert artifact.read("a", start, count) == content[start : start + count]
    with open_file(artifact, "a") as file:
        file.seek(start)
        assert file.read(count) == content[start : start + count]


def test_a_task_of_the_sandbox_reads_an_archive_through_its_parent(tmp_path: Path) -> None:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as archive:
        archive.writestr("weights", bytes(20 * 2**20))
        archive.writestr("note", "small")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.zip").write_bytes(body.getvalue())

    outcome = sandbox.run(
        f"{TASKS}:read_zip_member", "note", limits=LIMITS, access=Access(LocalArtifact(tmp_path))
    )

    assert outcome == Finished({"names": ["weights", "note"], "text": "small"})


@pytest.mark.parametrize("request_", ["another file", "too much", "rubbish"])
def test_a_task_that_requests_what_it_must_not_gets_nothing(tmp_path: Path, request_: str) -> None:
    (tmp_path / "a").write_bytes(bytes(100))

    outcome = sandbox.run(
        f"{TASKS}:request_badly", request_, limits=LIMITS, access=Access(LocalArtifact(tmp_path))
    )

    assert isinstance(outcome, Broken)
    assert outcome.cause.startswith(("EOFError", "BrokenPipeError", "ConnectionResetError"))


FOLDER = {"model/notes.txt": b"text", "model/empty": b"", "model/a.bin": bytes(9 * 2**20)}


@pytest.mark.django_db
def test_a_folder_that_is_no_model_is_read_named_and_removed(
    verified: Upload, s3_store: S3Store
) -> None:
    version = verified(FOLDER)

    assert version.filename == "model"
    assert version.declared_size_bytes == version.size_bytes == 4 + 9 * 2**20
    assert (version.state, version.format) == (VersionState.FAILED, "")
    assert version.state_reason.startswith("model is an unsupported format.")
    verification.advance(version.pk)
    assert versions_in(s3_store) == []


@pytest.mark.django_db
def test_files_are_completed_one_by_one(upload: Upload, people: People) -> None:
    version = _started(people)
    send_parts(people.member, version, FOLDER["model/empty"], path="model/empty")
    send_parts(people.member, version, FOLDER["model/notes.txt"], path="model/notes.txt")

    uploads.complete_files(
        actor=people.member, version_id=version.pk, paths=["model/empty", "model/notes.txt"]
    )

    with pytest.raises(Conflict, match=r"model/a.bin: 2 of 2 parts are missing"):
        uploads.complete(actor=people.member, version_id=version.pk)
    with pytest.raises(Conflict, match="model/empty is complete"):
        send_parts(people.member, version, b"", path="model/empty")
    with pytest.raises(Invalid, match="no file other"):
        uploads.complete_files(actor=people.member, version_id=version.pk, paths=["other"])
    with pytest.raises(Invalid, match="Name one of the files"):
        uploads.stored_parts(actor=people.member, version_id=version.pk, path="")
    send_parts(people.member, version, FOLDER["model/a.bin"], path="model/a.bin")
    completed = uploads.complete(actor=people.member, version_id=version.pk)
    assert completed.state == VersionState.VERIFYING
    assert all(file.s3_version_id for file in version.files.all())


@pytest.mark.django_db
def test_a_worker_that_dies_between_files_reads_only_what_is_left(
    upload: Upload, s3_store: S3Store
) -> None:
    version = upload(FOLDER)
    rows = list(version.files.all())
    checklist = _Checklist(dies_at="file 2 of 3")

    with pytest.raises(Death):
        stored_files.check_digests(s3_store, version, rows, checklist, copies={})

    assert [bool(file.sha256) for file in version.files.all()] == [True, False, False]
    checklist = _Checklist()
    again = list(version.files.all())
    identity = stored_files.check_digests(s3_store, version, again, checklist, copies={})
    assert checklist.read == ["file 2 of 3", "file 3 of 3"]
    digests = {path: hashlib.sha256(body).hexdigest() for path, body in FOLDER.items()}
    assert identity == files.identity(digests)


class _Checklist(Checklist):
    """Without a row; `read` are the files whose digest was computed."""

    def __init__(self, *, dies_at: str = "") -> None:
        self.read: list[str] = []
        self._dies_at = dies_at

    def running(self, name: str, detail: str) -> None:
        which = detail.removeprefix("reading the stored ")
        if which == self._dies_at:
            raise Death(detail)
        self.read.append(which)

    def pass_step(self, name: str, detail: str) -> None: ...

    def keep_alive(self) -> None: ...


def _started(people: People) -> ModelVersion:
    draft = UploadDraft(files=[DraftFile(path, len(body)) for path, body in FOLDER.items()])
    return uploads.start(
        actor=people.member, team_slug="vision", model_name="detector", draft=draft
    )
