"""Rows come in by multi-part uploads and go out by presigned addresses; no byte passes the portal."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from deployments.batch.services import advance, uploads
from deployments.models import BatchUpload
from portal.accounts.models import User
from portal.audit.models import AuditEvent
from portal.core.errors import Conflict, Forbidden, Invalid, NotFound
from tests import plain_http
from tests.deployments.batch.bench import Bench
from tests.page import page

pytestmark = pytest.mark.usefixtures("real_store")
URL = "/api/v1/batch-uploads"
PART = 8 * 2**20


def client_of(user: User) -> APIClient:
    client = APIClient()
    client.force_authenticate(user)
    return client


def put(client: APIClient, upload: dict[str, Any], body: bytes, number: int) -> None:
    part = body[(number - 1) * PART : number * PART]
    checksum = base64.b64encode(hashlib.sha256(part).digest()).decode()
    (signed,) = client.post(
        f"{URL}/{upload['id']}/parts",
        {"numbers": [number], "checksums": {str(number): checksum}},
        format="json",
    ).json()
    answer = plain_http.client.put(signed["url"], content=part, headers=signed["headers"])
    assert answer.status_code == 200, answer.text


def start(client: APIClient, size: int, name: str = "rows.csv") -> dict[str, Any]:
    body = {"team": "vision", "filename": name, "size_bytes": size, "part_checksums": True}
    answer = client.post(URL, body, format="json")
    assert answer.status_code == 201, answer.json()
    result: dict[str, Any] = answer.json()
    return result


def test_a_file_is_sent_in_parts_resumed_and_is_the_input_of_a_job(bench: Bench) -> None:
    row = b'{"n": 1, "x": "' + b"y" * 1000 + b'"}\n'
    body = row * (PART // len(row) + 100)
    client = client_of(bench.world.member)

    upload = start(client, len(body), "meine Zeilen (1).jsonl")

    assert upload["path"] == "meine-Zeilen-1-.jsonl"
    assert upload["input"].startswith(f"s3://{bench.bucket}/batch/vision/uploads/")
    (listed,) = client.get(f"{URL}/{upload['id']}/files").json()
    assert (listed["part_count"], listed["state"]) == (2, "waiting")
    put(client, upload, body, 2)
    assert client.get(f"{URL}/{upload['id']}/parts").json()["missing"] == [1]
    early = client.post(f"{URL}/{upload['id']}/complete")
    assert (early.status_code, early.json()["code"]) == (409, "parts_missing")
    put(client, upload, body, 1)
    done = client.post(f"{URL}/{upload['id']}/complete").json()
    assert done["is_complete"]
    assert client.post(f"{URL}/{upload['id']}/complete").json() == done
    job = bench.running(input=done["input"])
    assert job.total_rows == len(body) // len(row)
    assert AuditEvent.objects.get(action="batch.uploaded").after["input"] == upload["input"]


def test_what_cannot_be_rows_is_refused_by_name(bench: Bench) -> None:
    member = bench.world.member
    for filename in ("rows.xlsx", "rows", "", "../..", ".csv/"):
        with pytest.raises(Invalid) as refusal:
            uploads.start(actor=member, team_slug="vision", filename=filename, size_bytes=1)
        assert "Use one that ends with .jsonl or .csv." in refusal.value.fields["filename"]
    for size in (0, -1, 100 * 2**30 + 1):
        with pytest.raises(Invalid, match="1 byte to 100 GiB"):
            uploads.start(actor=member, team_slug="vision", filename="a.csv", size_bytes=size)
    assert not BatchUpload.objects.exists()
    name = uploads.start(
        actor=member, team_slug="vision", filename="../../nlp/\n%2f.csv", size_bytes=1
    ).key
    assert name.startswith("batch/vision/uploads/")
    assert name.count("/") == 4


def test_who_may_request_a_job_of_the_team_sends_its_rows(bench: Bench) -> None:
    people = bench.world
    upload = uploads.start(actor=people.member, team_slug="vision", filename="a.csv", size_bytes=1)
    for actor, error in ((people.viewer, Forbidden), (people.stranger, NotFound)):
        for run in (uploads.get, uploads.stored_parts, uploads.complete):
            with pytest.raises(error):
                run(actor=actor, upload_id=upload.pk)
    assert uploads.get(actor=people.lead, upload_id=upload.pk) == upload
    with pytest.raises(Forbidden):
        uploads.start(actor=people.viewer, team_slug="vision", filename="a.csv", size_bytes=1)
    with pytest.raises(NotFound):
        uploads.start(actor=people.stranger, team_slug="vision", filename="a.csv", size_bytes=1)
    assert BatchUpload.objects.count() == 1


def test_a_team_has_a_limit_of_open_uploads(bench: Bench, settings: Any) -> None:
    settings.SLIPWAY_TEAM_OPEN_UPLOADS = 1
    uploads.start(actor=bench.world.member, team_slug="vision", filename="a.csv", size_bytes=1)
    with pytest.raises(Conflict, match="1 open uploads of rows"):
        uploads.start(actor=bench.world.member, team_slug="vision", filename="b.csv", size_bytes=1)
    assert BatchUpload.objects.count() == 1


def test_an_abandoned_one_is_forgotten_with_its_parts_and_a_complete_one_keeps_its_file(
    bench: Bench,
) -> None:
    client = client_of(bench.world.member)
    left, done = start(client, 3, "left.csv"), start(client, 4, "done.csv")
    for upload, body in ((left, b"x\n1"), (done, b"x\n1\n")):
        put(client, upload, body, 1)
    client.post(f"{URL}/{done['id']}/complete")
    advance.sweep()
    assert BatchUpload.objects.count() == 2
    open_uploads = bench.s3.list_multipart_uploads(Bucket=bench.bucket).get("Uploads", [])
    assert len(open_uploads) == 1

    assert not advance.has_work()

    bench.world.clock.move(25 * 3600)
    assert advance.has_work()
    advance.sweep()

    assert not BatchUpload.objects.exists()
    assert not bench.s3.list_multipart_uploads(Bucket=bench.bucket).get("Uploads")
    assert [key.rpartition("/")[2] for key in bench.keys("batch/vision/uploads/")] == ["done.csv"]
    assert client.get(f"{URL}/{left['id']}/parts").status_code == 404


def test_parts_of_the_output_are_downloaded_from_the_store(bench: Bench) -> None:
    bench.put_rows(600)
    job = bench.running(workers=2)
    bench.work(index=0)
    bench.tick(job)
    client = client_of(bench.world.viewer)
    listed = client.get(f"/api/v1/batch-jobs/{job.pk}/parts").json()["results"]

    done = job.chunks.exclude(done_at=None)
    assert [part["number"] for part in listed] == list(done.values_list("number", flat=True))
    assert 0 < len(listed) < job.chunks.count()
    answer = plain_http.client.get(listed[0]["url"])
    assert answer.status_code == 200
    assert answer.content.count(b"\n") == listed[0]["rows"]
    assert answer.headers["Content-Disposition"] == 'attachment; filename="scores-00000.jsonl"'
    browser = Client()
    browser.force_login(bench.world.viewer)
    shown = page(browser.get("/vision/batch/scores"))
    assert "part-00000.jsonl" in shown.text
    link = browser.get("/vision/batch/scores/parts/0")
    assert link.status_code == 302
    assert plain_http.client.get(link["Location"]).content == answer.content
    # Not done, not there, not theirs.
    assert browser.get("/vision/batch/scores/parts/1").status_code == 404
    assert browser.get("/vision/batch/scores/parts/99999").status_code == 404
    browser.force_login(bench.world.stranger)
    assert browser.get("/vision/batch/scores/parts/0").status_code == 404
    stranger = client_of(bench.world.stranger)
    assert stranger.get(f"/api/v1/batch-jobs/{job.pk}/parts").status_code == 404
