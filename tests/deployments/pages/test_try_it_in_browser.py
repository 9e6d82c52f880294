"""Try it in a browser: a picture or a recording becomes values, and the other forms of the request follow the one that was sent."""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect
from pytest_django.live_server_helper import LiveServer

from deployments.models import ModelVersion
from deployments.serving.gateways import inference
from deployments.serving.gateways.inference import Answer
from tests import screenshots
from tests.deployments import golden_requests
from tests.deployments.browsing import chromium_for_tests, signed_in_context
from tests.deployments.world import World
from tests.waiting import PATIENCE_MS

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(screenshots.chromium_path() is None, reason="Chromium is not installed"),
    pytest.mark.django_db(transaction=True),
]
TRY = "/vision/deployments/detector/try"
SIGNATURE = {
    "inputs": [
        {"name": "image", "dtype": "FP32", "dims": [-1, 3, 8, 16]},
        {"name": "threshold", "dtype": "FP32", "dims": [-1, 1]},
        {"name": "sound", "dtype": "FP32", "dims": [-1, -1]},
    ],
    "outputs": [{"name": "scores", "dtype": "FP32", "dims": [-1, 3]}],
    "max_batch_size": 8,
    "class_names": ["cat", "dog", "owl"],
}
OUTPUTS = [
    {"name": "scores", "datatype": "FP32", "shape": [1, 3], "data": [0.25, 0.625, 0.125]},
    {"name": "boxes", "datatype": "FP32", "shape": [1, 2, 4], "data": [1, 2, 3, 4, 5, 6, 7, 8]},
]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with chromium_for_tests() as running:
        yield running


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    calls: list[Any] = []

    def answer(_: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        length = int(headers.get("Inference-Header-Content-Length", len(body)))
        calls.append(
            json.loads(body[:length]) | ({"rest": body[length:]} if length < len(body) else {})
        )
        return Answer(200, json.dumps({"outputs": OUTPUTS}).encode(), False, 12.34)

    monkeypatch.setattr(inference, "post", answer)
    return calls


def _note_error(complaints: list[str], line: ConsoleMessage) -> None:
    if line.type == "error":
        complaints.append(line.text)


@pytest.fixture
def complaints() -> list[str]:
    """Complaints of the page's console. A test takes out those that it provoked."""
    return []


@pytest.fixture
def page(
    chromium: Browser, live_server: LiveServer, world: World, complaints: list[str]
) -> Iterator[Page]:
    golden_requests.serving_with_signature(world)
    golden_requests.save(world, "three dogs")
    ModelVersion.objects.update(
        signature=SIGNATURE, metadata={"labels": {"sampling_rate": "16000"}}
    )
    context = signed_in_context(chromium, live_server.url, world.member)
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    if "SLIPWAY_PICTURES" not in os.environ:  # Playwright's own style for a picture is refused.
        page.on("console", lambda line: _note_error(complaints, line))
    page.goto(TRY)
    yield page
    context.close()
    assert complaints == []


def png(width: int, height: int, colour: tuple[int, int, int]) -> bytes:
    """Return a picture of one colour."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        checked = kind + content
        return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))

    rows = (b"\0" + bytes(colour) * width) * height
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = [chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def _save_pictures(page: Page, name: str) -> None:
    if folder := os.environ.get("SLIPWAY_PICTURES"):
        for width in screenshots.WIDTHS:
            for theme in screenshots.THEMES:
                page.set_viewport_size({"width": width, "height": 900})
                page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
                page.screenshot(path=Path(folder) / f"{name}-{width}-{theme}.png", full_page=True)
        page.set_viewport_size({"width": 1280, "height": 800})


def test_a_picture_is_sent_as_the_page_says(page: Page, sent: list[Any]) -> None:
    _save_pictures(page, "before")
    picture = page.get_by_label("Picture for image")
    picture.set_input_files(
        {"name": "red.png", "mimeType": "image/png", "buffer": png(32, 32, (255, 51, 0))}
    )
    note = page.locator("#id_input-0-file-note")
    expect(note).to_contain_text("red.png: Scaled to 16 \N{MULTIPLICATION SIGN} 8 in RGB")
    page.get_by_label("threshold").fill("0.5")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator("#answer")).to_contain_text("dog 0.625")

    image, threshold, _ = sent[0]["inputs"]
    assert image["shape"] == [1, 3, 8, 16]
    assert image["data"] == [1] * 128 + [0.2] * 128 + [0] * 128
    assert threshold["data"] == [0.5]
    page.get_by_text("As JSON").click()
    assert json.loads(page.locator("[name=body]").input_value()) == sent[0]
    expect(page.locator("#curl-text")).to_contain_text('"data": [0.5]')
    _save_pictures(page, "answered")

    page.locator("[name=body]").fill(json.dumps(sent[0]).replace("0.5]", "0.75]"))
    page.get_by_role("button", name="Send JSON").click()
    expect(page.get_by_label("threshold")).to_have_value("0.75")
    assert sent[1]["inputs"][1]["data"] == [0.75]


def wav(rate: int, seconds: float, levels: tuple[float, ...]) -> bytes:
    """Return a recording with a constant level for each channel."""
    frame = struct.pack(f"<{len(levels)}h", *(round(level * 32767) for level in levels))
    data = frame * round(rate * seconds)
    head = struct.pack("<HHIIHH", 1, len(levels), rate, rate * len(frame), len(frame), 16)
    parts = b"WAVEfmt " + struct.pack("<I", len(head)) + head
    parts += b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(parts)) + parts


def test_a_recording_is_resampled_and_mixed_and_kept_beside_an_error(
    page: Page, sent: list[Any], complaints: list[str]
) -> None:
    page.get_by_label("Recording for sound").set_input_files(
        {"name": "tone.wav", "mimeType": "audio/wav", "buffer": wav(8000, 2, (0.5, 0.25))}
    )
    expect(page.locator("#id_input-2-file-note")).to_contain_text("tone.wav: Resampled to 16 kHz")
    page.get_by_label("threshold").fill("")
    page.locator("[name=input-0]").fill("x")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator("#id_input-0_error")).to_contain_text("Enter finite numbers")
    expect(page.locator("#id_input-2-file-note")).to_contain_text("tone.wav")

    assert ["422" in line for line in complaints] == [True]
    complaints.clear()
    page.locator("[name=input-0]").fill("")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator("#answer")).to_contain_text("dog 0.625")

    sound = sent[0]["inputs"][2]
    assert sound["shape"] == [1, 32_000]
    assert sound["parameters"] == {"binary_data_size": 128_000}
    (middle,) = struct.unpack_from("<f", sent[0]["rest"], 4 * 16_000)
    assert middle == pytest.approx(0.375, abs=0.001)
    button = page.get_by_role("button", name="Save request.bin")
    assert json.loads(button.get_attribute("data-head") or "")["inputs"] == sent[0]["inputs"]


def test_a_file_that_is_no_picture_is_refused(page: Page, sent: list[Any]) -> None:
    page.get_by_label("Picture for image").set_input_files(
        {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"no picture"}
    )

    note = page.locator("#id_input-0-file-note")
    expect(note).to_have_text(
        "The browser cannot read notes.txt as a picture. Choose a PNG or JPEG."
    )
    expect(page.get_by_label("image", exact=True)).to_be_visible()
    assert sent == []
