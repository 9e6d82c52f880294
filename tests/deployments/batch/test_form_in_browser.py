"""The form of a batch job in Debian's Chromium: a file goes straight to S3, and the cost follows what is chosen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connections
from playwright.sync_api import Page, Route, expect

from deployments.models import BatchJob, BatchUpload
from deployments.registry.gateways import bucket_setup, object_store
from tests.deployments.batch.bench import OUT, Bench
from tests.deployments.browsing import chromium_for_tests, signed_in_context
from tests.deployments.registry import upload_page
from tests.waiting import PATIENCE_MS

pytestmark = [*upload_page.marks, pytest.mark.usefixtures("real_store")]


@pytest.fixture
def form(bench: Bench, live_server: Any, s3_server: str, settings: Any) -> Iterator[Page]:
    policy = settings.CONTENT_SECURITY_POLICY
    directives = policy["DIRECTIVES"] | {"connect-src": ["'self'", s3_server]}
    settings.CONTENT_SECURITY_POLICY = policy | {"DIRECTIVES": directives}
    store = object_store.s3_store()
    bucket_setup.prepare(store, region="us-east-1", origins=[live_server.url])
    with chromium_for_tests() as browser:
        context = signed_in_context(browser, live_server.url, bench.world.member)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.goto("/vision/batch/new")
        yield page
        context.close()
        # Beside Playwright's event loop Django keeps a connection of its own.
        connections.close_all()


def test_a_file_is_uploaded_and_requested_while_the_cost_is_shown(
    bench: Bench, form: Page, tmp_path: Path
) -> None:
    sent: list[tuple[str, str]] = []
    form.on("request", lambda request: sent.append((request.method, request.url)))
    rows = tmp_path / "rows.jsonl"
    line = b'{"n": 1, "x": "' + b"y" * 1000 + b'"}\n'
    rows.write_bytes(line * (20 * 2**20 // len(line)))

    form.set_input_files("#rows-file", rows)

    status = form.locator("#rows-upload [data-progress]")
    expect(status).to_have_text("rows.jsonl is uploaded and is the input of the job.")
    upload = BatchUpload.objects.get()
    assert (upload.s3_version_id != "", upload.has_part_checksums) == (True, True)
    assert form.input_value("[name=input]") == f"s3://{bench.bucket}/{upload.key}"
    # Three parts, and none of them to the portal.
    puts = [url for method, url in sent if method == "PUT"]
    assert len(puts) == 3
    assert not any("/vision/batch" in url and url.startswith(form.url[:21]) for url in puts)

    card = form.locator("#batch-estimate")
    expect(card).to_contain_text("not known")
    # The file names the job, unless a person does.
    assert form.input_value("[name=name]") == "rows"
    workers = form.locator("details", has_text="in flight")
    workers.locator("summary").click()
    form.select_option("[name=capacity]", "on-demand")
    expect(card).to_contain_text("1 worker, on-demand")
    form.fill("[name=workers]", "3")
    form.locator("[name=workers]").blur()
    expect(card).to_contain_text("$18")
    expect(workers.locator("summary")).to_have_text(re.compile(r"Workers\s+2 changed"))
    # The file is still the input, and nothing was requested by what changed.
    assert form.input_value("[name=input]").endswith("/rows.jsonl")
    assert not BatchJob.objects.exists()
    form.fill("[name=name]", "scores")
    assert form.input_value("[name=output]") == ""
    form.get_by_text("Output", exact=True).click()
    form.fill("[name=output]", f"s3://{bench.bucket}/{OUT}scores/")
    form.get_by_role("button", name="Request batch job").click()
    form.wait_for_url("**/vision/batch/scores")
    job = bench.tick(BatchJob.objects.get())
    assert (job.state, job.total_rows) == ("running", 20 * 2**20 // len(line))


def test_a_file_that_is_none_of_rows_says_so(form: Page, tmp_path: Path) -> None:
    path = tmp_path / "rows.xlsx"
    path.write_bytes(b"x")
    before = form.input_value("[name=input]")

    form.set_input_files("#rows-file", path)

    status = form.locator("#rows-upload [data-progress]")
    expect(status).to_contain_text("Use one that ends with .jsonl or .csv.")
    assert form.input_value("[name=input]") == before
    assert not BatchUpload.objects.exists()


def test_a_job_is_not_requested_while_its_rows_are_sent(
    bench: Bench, form: Page, tmp_path: Path
) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_bytes(b'{"n": 1}\n')
    held: list[Route] = []
    form.route("**/api/v1/batch-uploads", lambda route: held.append(route))  # noqa: PLW0108  Playwright marks it
    form.fill("[name=name]", "scores")

    form.set_input_files("#rows-file", rows)
    button = form.get_by_role("button", name="Request batch job")
    expect(button).to_be_disabled()
    form.press("[name=name]", "Enter")

    assert not BatchJob.objects.exists()
    assert form.url.endswith("/vision/batch/new")
    held[0].continue_()
    expect(button).to_be_enabled()
    assert form.input_value("[name=input]").endswith("/rows.jsonl")


def test_settings_of_queues_are_there_while_the_rows_are_a_queue(form: Page) -> None:
    queue, address = form.locator("#queue-settings"), form.locator("[name=input]")
    expect(queue).to_be_hidden()

    address.fill("redis://redis.vision.svc:6379/requests")
    expect(queue).to_be_visible()
    queue.locator("summary").click()
    form.fill("[name=secret]", "queue-auth")
    address.fill("s3://bucket/rows.jsonl")
    expect(queue).to_be_hidden()
    # They are not sent, as they are refused for a job over files.
    expect(form.locator("[name=secret]")).to_be_disabled()
    address.fill("kafka://kafka.vision.svc:9092/requests")

    expect(form.locator("[name=secret]")).to_have_value("queue-auth")
    expect(form.locator("[name=secret]")).to_be_enabled()
