"""One file on the upload page: sent, resumed, refused, known."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, Route, expect

from deployments.models import ArtifactFile, ModelVersion
from deployments.states import VersionState
from tests.deployments import onnx_models
from tests.deployments.registry import upload_page
from tests.deployments.registry.upload_page import apart, verify_the_only_version
from tests.fixtures import exported

pytestmark = upload_page.marks


def big_model(folder: Path) -> Path:
    """A real ONNX file of three parts."""
    path = folder / "detector.onnx"
    path.write_bytes(onnx_models.large(megabytes=20))
    return path


def test_a_file_chosen_in_the_browser_becomes_ready_before_the_eyes(
    page: Page, tmp_path: Path
) -> None:
    page.goto("/vision/upload")
    page.set_input_files("#file", big_model(tmp_path))
    expect(page.locator("[name=model]")).to_have_value("detector")
    page.click("text=Details")
    page.fill("[name=metrics]", "accuracy = 0.91")
    page.click("text=Batching and inputs")
    page.fill("[name=max_batch_size]", "8")
    page.fill("[name=largest_inputs]", "x = -1 x four")
    page.click("text=Batching and inputs")
    expect(page.locator("[name=largest_inputs]")).to_be_hidden()
    page.click("#send")
    expect(page.locator("[name=largest_inputs]")).to_have_attribute("aria-invalid", "true")
    expect(page.locator("[name=largest_inputs]")).to_be_focused()
    page.fill("[name=largest_inputs]", "x = -1 x 4")
    page.click("#send")

    expect(page.locator("#verification")).to_have_attribute("data-state", "verifying")
    version = apart(verify_the_only_version)

    expect(page.locator("#verification")).to_have_attribute("data-state", "ready")
    expect(page.get_by_role("link", name="Deploy", exact=True)).to_have_attribute(
        "href", f"/vision/deployments/new?version={version.pk}"
    )
    assert version.has_part_checksums
    assert version.metadata == {"metrics": {"accuracy": 0.91}}
    sizes = {"x": [-1, 4]}
    declared = {"supports_batching": None, "max_batch_size": 8, "largest_inputs": sizes}
    assert version.declared == declared
    declared_sha256 = apart(lambda: ArtifactFile.objects.get().declared_sha256)
    assert version.sha256 == declared_sha256 != ""
    assert page.complaints == []  # type: ignore[attr-defined]


def test_a_laptop_shows_the_button_without_scrolling(page: Page, tmp_path: Path) -> None:
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto("/vision/upload")
    expect(page.locator("#send")).to_be_in_viewport(ratio=1)
    page.set_input_files("#file", big_model(tmp_path))

    expect(page.locator("#file-note")).to_contain_text("ONNX")
    expect(page.locator("#send")).to_be_in_viewport(ratio=1)
    expect(page.locator("[name=metrics]")).to_be_hidden()


def test_a_name_follows_the_file_until_it_is_typed(page: Page, tmp_path: Path) -> None:
    names = ("First Model.onnx", "second.onnx")
    for name in names:
        (tmp_path / name).write_bytes(onnx_models.linear())
    model = page.locator("[name=model]")
    page.goto("/vision/upload")

    page.set_input_files("#file", tmp_path / names[0])
    expect(model).to_have_value("first-model")
    page.set_input_files("#file", tmp_path / names[1])
    expect(model).to_have_value("second")
    model.fill("mine")
    page.set_input_files("#file", tmp_path / names[0])

    expect(page.locator("#file-name")).to_have_text(names[0])
    expect(model).to_have_value("mine")


def test_details_typed_while_files_are_sent_are_kept(page: Page, tmp_path: Path) -> None:
    path = big_model(tmp_path)
    held: list[Route] = []
    is_typed = False

    def wait_for_typing(route: Route) -> None:
        route.continue_() if is_typed else held.append(route)

    page.context.route("**/detector.onnx?*", wait_for_typing)
    page.goto("/vision/upload")
    page.click("text=Details")
    page.fill("[name=dataset_version]", "october")
    page.set_input_files("#file", path)
    page.click("#send")
    expect(page.locator("[name=model]")).to_be_disabled()

    page.fill("[name=metrics]", "accuracy 91")
    is_typed = True
    for route in held:
        route.continue_()
    expect(page.locator("[name=metrics]")).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#pause")).to_have_text("Resume")
    assert apart(lambda: ModelVersion.objects.get().state) == VersionState.UPLOADING
    page.fill("[name=metrics]", "accuracy = 0.91")
    page.click("#pause")

    expect(page.locator("#verification")).to_have_attribute("data-state", "verifying")
    metadata = {"dataset_version": "october", "metrics": {"accuracy": 0.91}}
    assert apart(lambda: ModelVersion.objects.get().metadata) == metadata
    # The next upload begins with an empty form.
    expect(page.locator("[name=metrics]")).to_have_value("")
    expect(page.locator("[name=model]")).to_have_value("")


def test_torchscript_is_declared_in_the_form_and_corrected_on_its_page(
    page: Page, tmp_path: Path
) -> None:
    path = tmp_path / "rows.pt"
    path.write_bytes(exported.files_of("torchscript")["rows.pt"])
    page.goto("/vision/upload")
    page.set_input_files("#file", path)
    page.click("text=Batching and inputs")
    page.fill("[name=inputs]", "rows = FP32 -1 by 4")
    page.fill("[name=outputs]", "scores = FP32 -1 x 3")
    page.click("#send")
    expect(page.locator("[name=inputs]")).to_have_attribute("aria-invalid", "true")
    page.fill("[name=inputs]", "rows = fp32 -1 x 4")
    page.click("#send")

    expect(page.locator("#verification")).to_have_attribute("data-state", "verifying")
    version = apart(verify_the_only_version)
    assert version.state == VersionState.QUARANTINED
    page.goto("/vision/models/rows/1")
    expect(page.locator("#verification")).to_contain_text("forward takes 2: rows, scale")
    expect(page.locator("#declare [name=inputs]")).to_have_value("rows = FP32 -1 x 4")
    page.fill("#declare [name=inputs]", "rows = FP32 -1 x 4\nscale = FP32 -1 x 1")
    page.click("text=Save and verify again")

    expect(page.locator("#verification")).to_have_attribute("data-state", "verifying")
    assert apart(verify_the_only_version).state == VersionState.READY
    expect(page.locator("#verification")).to_have_attribute("data-state", "ready")
    assert page.complaints == []  # type: ignore[attr-defined]


def test_an_upload_goes_on_after_the_tab_was_closed(page: Page, tmp_path: Path) -> None:
    path = big_model(tmp_path)
    sent: list[str] = []

    def let_two_parts_through(route: Route) -> None:
        sent.append(route.request.url)
        # One that is kept waiting would be sent after all when its page closes.
        route.continue_() if len(sent) <= 2 else route.abort()

    page.context.route("**/detector.onnx?*", let_two_parts_through)
    page.goto("/vision/upload")
    page.set_input_files("#file", path)
    page.click("#send")
    expect(page.locator("#progress-text")).to_contain_text("of 19 MiB")
    page.wait_for_function("() => document.querySelector('#bar').value > 55")
    context = page.context
    page.close()
    context.unroute("**/detector.onnx?*")

    again = context.new_page()
    again.goto("/vision/upload")
    expect(again.locator("#unfinished")).to_contain_text("detector.onnx")
    again.set_input_files("#file", path)
    expect(again.locator("#file-note")).to_contain_text("Already partly uploaded as detector:1")
    puts: list[str] = []
    again.on("request", lambda r: puts.append(r.url) if r.method == "PUT" else None)
    asked: list[str] = []

    def assemble_slowly(route: Route) -> None:
        """More often than the page repeats a request that fails."""
        asked.append(route.request.url)
        if len(asked) > 12:
            route.continue_()
            return
        body = {"code": "assembling", "detail": "Object storage is assembling detector.onnx."}
        route.fulfill(status=503, json=body, headers={"Retry-After": "0.01"})

    context.route("**/complete", assemble_slowly)
    again.click("#send")

    expect(again.locator("#verification")).to_have_attribute("data-state", "verifying")
    assert (len(puts), len(asked)) == (1, 13)
    version = apart(verify_the_only_version)
    assert version.state == VersionState.READY


def test_a_refusal_stands_beside_its_field_and_keeps_what_was_typed(
    page: Page, tmp_path: Path
) -> None:
    path = tmp_path / "detector.onnx"
    path.write_bytes(onnx_models.linear())
    page.goto("/vision/upload")
    page.set_input_files("#file", path)
    page.fill("[name=model]", "My_Detector")
    page.click("text=Details")
    page.fill("[name=metrics]", "accuracy 91")
    page.click("#send")

    expect(page.locator(".field:has([name=model]) .err")).to_contain_text("'my-detector'")
    expect(page.locator(".field:has([name=metrics]) .err")).not_to_be_empty()
    expect(page.locator("[name=metrics]")).to_have_value("accuracy 91")
    assert apart(ModelVersion.objects.count) == 0


def test_known_bytes_are_reported_and_sent_again_only_on_request(
    page: Page, tmp_path: Path
) -> None:
    path = tmp_path / "detector.onnx"
    path.write_bytes(onnx_models.linear())
    page.goto("/vision/upload")
    page.set_input_files("#file", path)
    page.click("#send")
    expect(page.locator("#verification")).to_have_attribute("data-state", "verifying")
    apart(verify_the_only_version)

    page.goto("/vision/upload")
    page.set_input_files("#file", path)
    page.click("#send")
    expect(page.locator("#problem")).to_contain_text("already version 1 of detector")
    expect(page.locator("#problem")).to_be_focused()
    assert apart(ModelVersion.objects.count) == 1

    page.click("#anyway")
    expect(page.locator("#verification")).to_have_attribute("data-state", "verifying")
    assert apart(ModelVersion.objects.count) == 2
