"""The walk of the README, with a browser, in two demos on one machine at once: each answers its own requests."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e import browser_steps, browsers
from tests.e2e.browsers import browser
from tests.e2e.demo_process import ROOT, DemoProcess
from tests.e2e.rest import Classifier

__all__ = ["browser"]
pytestmark = browsers.marks
_MOST_CALLS = 2000
KINDS = {"python": "manage.py", "yaml": "docker-compose.yml"}


@pytest.fixture(scope="module")
def demos(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[DemoProcess]]:
    """Both are started at the same moment, with the ports that every demo prefers."""
    folder = tmp_path_factory.mktemp("demos")
    both = [
        DemoProcess(folder / "first" / "var", has_samples=True),
        DemoProcess(folder / "second" / "var"),
    ]
    for demo in both:
        demo.folder.parent.mkdir()
    try:
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda demo: demo.start(port=None), both))
        yield both
    finally:
        for demo in both:
            if demo.process and demo.process.poll() is None:
                demo.stop()


@pytest.fixture(autouse=True)
def _each_module_gives_its_gpus_back() -> None:
    """These demos are of this module alone."""


def test_the_walk_of_the_readme_works_in_both(demos: list[DemoProcess], browser: Browser) -> None:
    complaints: list[str] = []
    names = ["filetype", "filetype-second"]
    people = [browsers.sign_in(browser, demo, "member", complaints) for demo in demos]

    # 1. Upload the model that `make demo` names.
    for demo, member, name in zip(demos, people, names, strict=True):
        browser_steps.upload(member, _named_model(demo), name)
        # 2. Price, quota, GPU memory and the manifests are shown before it is sent.
        browser_steps.request_deployment(member, name)
    # 3. The lead approves.
    for demo, name in zip(demos, names, strict=True):
        browser_steps.approve(browsers.sign_in(browser, demo, "lead", complaints), name)
    for member, name in zip(people, names, strict=True):
        member.goto(f"/vision/deployments/{name}")
        ready = member.locator("main .pill", has_text="Ready").first
        expect(ready).to_be_visible(timeout=120_000)
    # 4. Call it.
    addresses = [_address(member, name) for member, name in zip(people, names, strict=True)]
    assert len({address.split("/")[2] for address in addresses}) == 2
    for demo, address, name in zip(demos, addresses, names, strict=True):
        classifier = Classifier(demo, address, name)
        for kind, path in [*KINDS.items()] * 20:
            assert classifier.kind_of((ROOT / path).read_bytes()) == kind
    assert complaints == []


def test_ctrl_c_under_load_leaves_no_process(demos: list[DemoProcess]) -> None:
    """Pressed twice, as people do when it takes a moment."""
    with ThreadPoolExecutor(8) as callers:
        for demo in demos * 4:
            callers.submit(_call_until_refused, demo)
        for demo in demos:
            assert demo.process
            demo.process.send_signal(signal.SIGINT)
            demo.process.send_signal(signal.SIGINT)
        codes = [demo.process.wait(120) for demo in demos if demo.process]

    assert codes == [0, 0]
    assert [demo.processes() for demo in demos] == [[], []]


def _call_until_refused(demo: DemoProcess) -> None:
    """Requests to pages and models, one after the other, until nobody listens."""
    ports = json.loads((demo.folder / "ports.json").read_text())
    addresses = [f"http://127.0.0.1:{ports['gateway']}/vision/x", f"{demo.url}/sign-in"]
    for address in addresses * _MOST_CALLS:
        try:
            httpx.get(address, timeout=20)
        except httpx.ConnectError:
            return
        except httpx.HTTPError:
            continue


def _named_model(demo: DemoProcess) -> Path:
    match = re.search(r"Upload this model: +(\S+)", demo.said)
    assert match, demo.said
    return Path(match[1])


def _address(member: Page, name: str) -> str:
    address = member.locator("main").get_by_text(re.compile(rf"^http://.*/vision/{name}$")).first
    return address.inner_text().strip()
