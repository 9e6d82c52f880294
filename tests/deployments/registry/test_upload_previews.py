"""What files are, before any of them is sent."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.models import ArtifactFile, Model, ModelVersion
from deployments.registry.domain.formats import catalogue
from deployments.registry.domain.formats.format import Format
from deployments.registry.gateways.object_store import S3Store
from deployments.registry.services import upload_validation, uploads
from deployments.registry.services.upload_validation import (
    DraftFile,
    UploadDraft,
    UploadPreview,
)
from portal.audit.models import AuditEvent
from portal.core.errors import Invalid, NotFound
from tests.deployments import onnx_models
from tests.deployments.uploading import People, Upload

pytestmark = pytest.mark.django_db
HDF5 = b"\x89HDF\r\n\x1a\n"


def preview(people: People, *files: DraftFile, model: str = "detector") -> UploadPreview:
    return upload_validation.preview(
        actor=people.member,
        team_slug="vision",
        model_name=model,
        draft=UploadDraft(files=list(files)),
    )


def test_first_bytes_name_the_format_and_change_nothing(people: People) -> None:
    head = onnx_models.linear()

    verdict = preview(people, DraftFile("detector.onnx", len(head), head=head))

    assert verdict == UploadPreview(format_name="ONNX", same_sizes=[], needed_heads=[])
    assert (Model.objects.count(), ModelVersion.objects.count()) == (0, 0)
    assert AuditEvent.objects.count() == 0


def test_lying_extension_is_refused_with_what_the_file_is(people: People) -> None:
    verdict = preview(people, DraftFile("detector.onnx", 100, head=HDF5))

    assert "detector.onnx is " in verdict.problem
    assert verdict.format_name == "HDF5 (Keras)"


def test_server_requests_the_first_bytes_that_decide(people: People) -> None:
    nothing_sent = preview(people, DraftFile("detector.onnx", 100))

    assert (nothing_sent.format_name, nothing_sent.problem) == ("", "")
    assert nothing_sent.needed_heads == ["detector.onnx"]


def test_format_that_reads_an_unsent_file_of_a_folder_is_not_refused(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second file decides; its first bytes were not sent with the first request."""

    def detect(artifact: Any) -> str | None:
        return "b/model" if artifact.read("b/model", 0, 4) == b"BEST" else None

    best = Format(key="best", name="the best format", detect=detect)
    monkeypatch.setattr(catalogue, "FORMATS", (best, *catalogue.FORMATS))
    first, second = DraftFile("a.txt", 10, head=b"text"), DraftFile("b/model", 100)
    draft = UploadDraft(files=[first, second])

    assert "b/model" in preview(people, first, second).needed_heads
    version = uploads.start(
        actor=people.member, team_slug="vision", model_name="detector", draft=draft
    )

    assert version.files.count() == 2
    sent = DraftFile("b/model", 100, head=b"BEST")
    assert preview(people, first, sent).format_name == "the best format"
    with pytest.raises(Invalid, match="unsupported format"):
        uploads.start(
            actor=people.member,
            team_slug="vision",
            model_name="other",
            draft=UploadDraft(files=[first, DraftFile("b/model", 100, head=b"else")]),
        )
    assert ModelVersion.objects.count() == 1


def test_paths_and_sizes_are_refused_first(people: People) -> None:
    assert "'..'" in preview(people, DraftFile("../m.onnx", 5)).problem
    assert "empty" in preview(people, DraftFile("m.onnx", 0)).problem
    assert "same name" in preview(people, DraftFile("A", 5), DraftFile("a", 5)).problem


def test_versions_with_the_same_paths_and_sizes_are_named(
    people: People, verified: Upload, s3_store: S3Store
) -> None:
    body = onnx_models.linear()
    version = verified(body)
    same = DraftFile("detector.onnx", len(body))

    assert preview(people, same).same_sizes == [version]
    assert preview(people, same, model="other").same_sizes == []
    assert preview(people, DraftFile("detector.onnx", len(body) + 1)).same_sizes == []
    assert preview(people, DraftFile("other.onnx", len(body))).same_sizes == []
    assert preview(people, same, model="no\0name").same_sizes == []


def test_unfinished_uploads_have_no_digests_to_compare(people: People) -> None:
    draft = UploadDraft(files=[DraftFile("detector.onnx", 50)])
    uploads.start(actor=people.member, team_slug="vision", model_name="detector", draft=draft)

    assert preview(people, DraftFile("detector.onnx", 50)).same_sizes == []
    assert ArtifactFile.objects.count() == 1


def test_strangers_learn_nothing_of_a_team(people: People) -> None:
    draft = UploadDraft(files=[DraftFile("detector.onnx", 50)])

    with pytest.raises(NotFound):
        upload_validation.preview(
            actor=people.stranger, team_slug="vision", model_name="detector", draft=draft
        )
