"""Folders, several files and archives on the upload page."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from playwright.sync_api import Page, Request, Route, expect

from deployments.models import ArtifactFile, Model, ModelVersion
from deployments.registry.domain.artifacts import files as artifact_files
from deployments.registry.domain.formats import catalogue
from deployments.registry.domain.formats.format import Format
from deployments.registry.gateways.object_store import S3Store
from deployments.states import VersionState
from tests.deployments import onnx_models
from tests.deployments.registry import upload_page
from tests.deployments.registry.upload_page import apart, verify_the_only_version

pytestmark = upload_page.marks
MIB = 2**20
# As large as the weights of a folder would be: three parts, and one.
FOLDER: Mapping[str, bytes] = {
    "1/model.onnx": onnx_models.large(megabytes=20),
    "config.pbtxt": b'name: "detector"',
    "labels.txt": b"cat\ndog\n",
}
IGNORED = {
    ".git/HEAD": b"ref",
    "1/__pycache__/a.pyc": b"x",
    "1/._model.onnx": b"x",
    ".DS_Store": b"x",
}


def write(folder: Path, contents: Mapping[str, bytes]) -> Path:
    for path, body in contents.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(body)
    return folder


@pytest.fixture
def folder_format(monkeypatch: pytest.MonkeyPatch) -> None:
    """A format of folders, so that these tests are about the page and not about any format."""
    kind = Format(
        key="onnx",
        name="ONNX in a folder",
        detect=lambda artifact: "1/model.onnx" if "1/model.onnx" in artifact.sizes else None,
    )
    monkeypatch.setattr(catalogue, "FORMATS", (kind, *catalogue.FORMATS))


def puts_of(page: Page) -> list[str]:
    """The keys of all parts sent from now on."""
    keys: list[str] = []

    def record(request: Request) -> None:
        if request.method == "PUT":
            keys.append(request.url.partition("?")[0])

    page.on("request", record)
    return keys


def stored(store: S3Store) -> dict[str, bytes]:
    files = ArtifactFile.objects.select_related("version")
    return {f.path: b"".join(store.read(f.key, f.s3_version_id)) for f in files}


def send_all_but_labels(page: Page, folder: Path) -> None:
    page.context.route("**/labels.txt?*", lambda route: route.abort())
    page.goto("/vision/upload")
    page.set_input_files("#folder", folder)
    page.click("#send")
    page.wait_for_function("() => document.querySelector('#bar').value > 99")


def another_browser(page: Page, session: str) -> Page:
    """Signed in as the same person."""
    browser = page.context.browser
    assert browser
    portal = page.url.removesuffix("/vision/upload")
    context = browser.new_context(base_url=portal)
    context.add_cookies([{"name": "sessionid", "value": session, "url": portal}])
    return context.new_page()


def list_digests(route: Route) -> None:
    """What S3 lists, and the server of these tests leaves out: the SHA-256 of stored parts."""
    answer = route.fetch()
    state = answer.json()
    for part in state["stored"]:
        start = (part["number"] - 1) * state["part_size"]
        body = FOLDER["1/model.onnx"][start : start + state["part_size"]]
        part["sha256"] = base64.b64encode(hashlib.sha256(body).digest()).decode()
    route.fulfill(response=answer, json=state)


def wait_for_verification(page: Page) -> None:
    expect(page.locator("#verification")).to_have_attribute("data-state", "verifying")


@pytest.mark.usefixtures("folder_format")
def test_folder_is_listed_and_sent_without_what_is_no_model(
    page: Page, s3_store: S3Store, tmp_path: Path
) -> None:
    page.goto("/vision/upload")
    page.set_input_files("#folder", write(tmp_path / "detector", {**FOLDER, **IGNORED}))

    expect(page.locator("#file-name")).to_have_text("detector/")
    expect(page.locator("#file-note")).to_contain_text("ONNX in a folder · 3 files · 19 MiB")
    expect(page.locator("#file-note")).to_contain_text(
        "skipped .DS_Store, ._model.onnx, .git, __pycache__"
    )
    expect(page.locator("#files li [data-path]")).to_have_text(sorted(FOLDER))
    expect(page.locator("[name=model]")).to_have_value("detector")
    page.get_by_role("button", name="Remove labels.txt").click()
    expect(page.locator("#files li")).to_have_count(2)
    expect(page.get_by_role("button", name="Remove config.pbtxt")).to_be_focused()
    page.click("#send")
    wait_for_verification(page)

    sent = {path: body for path, body in FOLDER.items() if path != "labels.txt"}
    assert apart(lambda: stored(s3_store)) == sent
    declared = apart(lambda: dict(ArtifactFile.objects.values_list("path", "declared_sha256")))
    assert declared == {path: hashlib.sha256(body).hexdigest() for path, body in sent.items()}
    assert page.complaints == []  # type: ignore[attr-defined]


def test_dropped_folder_becomes_ready(page: Page, tmp_path: Path) -> None:
    folder = write(tmp_path / "detector", {"model.onnx": onnx_models.linear(), **IGNORED})
    page.goto("/vision/upload")
    box = page.locator("#drop").bounding_box()
    assert box
    devtools = page.context.new_cdp_session(page)
    place = {"x": box["x"] + 40, "y": box["y"] + 40}
    data = {"items": [], "files": [str(folder)], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        devtools.send("Input.dispatchDragEvent", {"type": kind, "data": data, **place})

    expect(page.locator("#file-name")).to_have_text("detector/")
    expect(page.locator("#file-note")).to_contain_text("ONNX")
    page.click("#send")
    wait_for_verification(page)
    assert apart(verify_the_only_version).state == VersionState.READY
    assert apart(lambda: ArtifactFile.objects.get().path) == "model.onnx"


def test_zip_is_sent_as_one_file_and_unpacked_by_the_worker(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "detector.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("detector.onnx", onnx_models.linear())
    page.goto("/vision/upload")
    page.set_input_files("#file", path)
    expect(page.locator("#file-note")).to_contain_text("zip archive, unpacked after the upload")
    page.click("#send")
    wait_for_verification(page)

    assert apart(verify_the_only_version).state == VersionState.READY
    assert apart(lambda: ArtifactFile.objects.get().path) == "detector.onnx"


def test_file_that_cannot_be_a_model_is_refused_before_a_byte_is_sent(
    page: Page, tmp_path: Path
) -> None:
    path = tmp_path / "detector.onnx"
    path.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    page.goto("/vision/upload")
    puts = puts_of(page)
    page.set_input_files("#file", path)

    expect(page.locator("#problem-text")).to_contain_text("detector.onnx is HDF5 (Keras)")
    expect(page.locator("#formats")).to_contain_text("ONNX")
    expect(page.locator("#problem")).to_be_focused()
    expect(page.locator("#send")).to_be_disabled()
    path.write_bytes(onnx_models.linear())
    page.set_input_files("#file", path)
    expect(page.locator("#problem")).to_be_hidden()
    expect(page.locator("#send")).to_be_enabled()
    assert puts == []
    assert apart(Model.objects.count) == 0


def test_more_files_than_a_version_takes_are_refused(page: Page, tmp_path: Path) -> None:
    names = {f"{number}.txt": b"x" for number in range(artifact_files.MAX_FILES + 1)}
    page.goto("/vision/upload")
    page.set_input_files("#folder", write(tmp_path / "many", names))

    expect(page.locator("#problem-text")).to_contain_text("more than 2,000 files")
    expect(page.locator("#send")).to_be_disabled()


@pytest.mark.usefixtures("folder_format")
def test_folder_resumes_in_another_browser(
    page: Page, session: str, s3_store: S3Store, tmp_path: Path
) -> None:
    folder = write(tmp_path / "detector", FOLDER)
    send_all_but_labels(page, folder)
    other = another_browser(page, session)
    page.context.close()
    other.goto("/vision/upload")
    expect(other.locator("#unfinished")).to_contain_text("expires in 23 h")
    puts = puts_of(other)
    other.set_input_files("#folder", folder)
    expect(other.locator("#file-note")).to_contain_text("Already partly uploaded as detector:1")
    other.click("#send")
    wait_for_verification(other)

    assert apart(ModelVersion.objects.count) == 1
    assert [key.rpartition("/")[2] for key in puts] == ["labels.txt"]
    assert apart(lambda: stored(s3_store)) == FOLDER


@pytest.mark.usefixtures("folder_format")
def test_files_that_changed_since_are_no_unfinished_upload(
    page: Page, session: str, s3_store: S3Store, tmp_path: Path
) -> None:
    folder = write(tmp_path / "detector", FOLDER)
    send_all_but_labels(page, folder)
    model = folder / "1/model.onnx"
    body = bytearray(model.read_bytes())
    body[9 * MIB] ^= 1
    model.write_bytes(body)
    other = another_browser(page, session)
    page.context.close()
    other.goto("/vision/upload")
    other.set_input_files("#folder", folder)
    expect(other.locator("#file-note")).to_contain_text("ONNX in a folder · 3 files")

    # An upload too large for digests of whole files: S3 lists the digests of its parts.
    apart(lambda: ArtifactFile.objects.update(declared_sha256=""))
    other.context.route("**/parts?path=*model.onnx", list_digests)
    puts = puts_of(other)
    other.set_input_files("#folder", folder)
    expect(other.locator("#file-note")).to_contain_text("Already partly uploaded as detector:1")
    other.click("#send")
    wait_for_verification(other)

    assert sorted(key.rpartition("/")[2] for key in puts) == ["labels.txt", "model.onnx"]
    assert apart(lambda: stored(s3_store)) == {**FOLDER, "1/model.onnx": bytes(body)}


def test_paused_upload_resumes(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "detector.onnx"
    path.write_bytes(onnx_models.linear())
    # A part that never ends.
    page.context.route("**/detector.onnx?*", lambda route: None)
    page.goto("/vision/upload")
    page.set_input_files("#file", path)
    with page.expect_request(lambda request: request.method == "PUT"):
        page.click("#send")
    page.click("#pause")
    expect(page.locator("#progress-status")).to_have_text(
        "Paused. Sent parts are kept for 24 hours."
    )
    page.context.unroute("**/detector.onnx?*")
    expect(page.locator("#pause")).to_have_text("Resume")
    page.click("#pause")

    wait_for_verification(page)
    assert apart(ModelVersion.objects.count) == 1


def test_portal_that_fails_for_a_moment_is_tried_again(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "detector.onnx"
    path.write_bytes(onnx_models.linear())
    failures = iter([503, 429])

    def fail_twice(route: Route) -> None:
        status = next(failures, 0) if route.request.method == "POST" else 0
        route.fulfill(status=status, json={"detail": "later"}) if status else route.continue_()

    page.context.route("**/api/v1/versions/*/parts", fail_twice)
    page.goto("/vision/upload")
    page.set_input_files("#file", path)
    page.click("#send")

    wait_for_verification(page)
    assert next(failures, None) is None


def test_digest_of_a_stream_is_sha256(page: Page) -> None:
    """Each length around the blocks of 64 bytes, cut anywhere."""
    page.goto("/vision/upload")
    digests: list[list[str]] = page.evaluate(
        """async () => {
          const { Sha256 } = await import("/static/js/upload/sha256.js");
          return [...Array(260).keys()].map((length) => {
            const bytes = Uint8Array.from({ length }, (_, index) => (index * 7 + length) % 256);
            return [0, length >> 1, Math.min(length, 63)].map((cut) => {
              const digest = new Sha256();
              digest.update(bytes.subarray(0, cut));
              digest.update(bytes.subarray(cut));
              return digest.hex();
            });
          });
        }"""
    )

    for length, found in enumerate(digests):
        body = bytes((index * 7 + length) % 256 for index in range(length))
        assert found == [hashlib.sha256(body).hexdigest()] * 3


def test_large_file_is_digested_by_the_worker_before_it_is_sent(page: Page, tmp_path: Path) -> None:
    """33 MiB: more than is digested in memory."""
    path = tmp_path / "detector.onnx"
    body = onnx_models.large(megabytes=35)
    path.write_bytes(body)
    page.goto("/vision/upload")
    page.set_input_files("#file", path)
    page.click("#send")
    wait_for_verification(page)

    declared = apart(lambda: ArtifactFile.objects.get().declared_sha256)
    assert declared == hashlib.sha256(body).hexdigest()
    assert len(body) > 32 * MIB
