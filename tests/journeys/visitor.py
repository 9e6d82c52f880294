"""A person at a browser: every click counted, nothing done but by pointer and keys, and every complaint noted."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Dialog, Locator, Page, Request, expect

from portal.accounts.models import User
from tests import screenshots
from tests.browser_console import complaints_of
from tests.waiting import PATIENCE_MS

Theme = Literal["light", "dark"]
Role = Literal["link", "button", "radio"]
LEFT_OPEN_SECONDS = 130
PASSWORD = "a long enough password"
marks = [
    pytest.mark.browser,
    pytest.mark.skipif(screenshots.chromium_path() is None, reason="Chromium is not installed"),
    pytest.mark.django_db(transaction=True),
]

# Kept in the tab, so that a page that is left at once still counts. Keys make clicks too, without a pointer.
_COUNT_CLICKS = """
addEventListener("click", ({ isTrusted, pointerType, detail, target }) => {
  if (!isTrusted || !pointerType) return;
  // The field of a label that was clicked gets a click of its own, at the same instant.
  if (detail && window.slipwayLabelled === target) { window.slipwayLabelled = undefined; return; }
  window.slipwayLabelled = target.closest("label")?.control;
  const name = (target.closest("a, button, label, summary") ?? target).textContent.trim().replace(/\\s+/g, " ");
  const clicks = JSON.parse(sessionStorage.getItem("clicks") ?? "[]");
  sessionStorage.setItem("clicks", JSON.stringify([...clicks, name.slice(0, 60)]));
}, true);
"""
# What a person sees of the focus: an outline, or a shadow that what has no focus does not have.
_IS_FOCUS_VISIBLE = """() => {
  const element = document.activeElement;
  if (!element || element === document.body) return "nothing has the focus";
  const box = element.getBoundingClientRect();
  const shown = [element, element.closest("label, .input, .choice label")].filter(Boolean).some((one) => {
    const style = getComputedStyle(one);
    return (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== "none";
  });
  if (!shown) return `no sign of the focus: ${element.outerHTML.slice(0, 120)}`;
  const isInside = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
  if (!isInside) return `outside of the window: ${element.outerHTML.slice(0, 120)}`;
  const seen = document.elementFromPoint(
    Math.min(Math.max(box.left + box.width / 2, 0), innerWidth - 1),
    Math.min(Math.max(box.top + Math.min(box.height / 2, 20), 0), innerHeight - 1));
  const isOnTop = seen && (element.contains(seen) || seen.contains(element) || seen.closest("label")?.control === element);
  return isOnTop ? "" : `covered by ${seen?.outerHTML.slice(0, 80)}: ${element.outerHTML.slice(0, 120)}`;
}"""


@dataclass
class Visitor:
    """Someone who is signed in, with what their pages complained about."""

    page: Page
    complaints: list[str]
    theme: Theme
    width: int
    expected: list[str] = field(default_factory=list)

    def list_clicks(self) -> list[str]:
        """Return what was clicked since the last count, and count anew."""
        clicks: list[str] = json.loads(
            self.page.evaluate("sessionStorage.getItem('clicks')") or "[]"
        )
        self.page.evaluate("sessionStorage.removeItem('clicks')")
        return clicks

    def click(self, name: str, *, role: Role = "button", exact: bool = False) -> None:
        self.named(name, role=role, exact=exact).click()

    def named(self, name: str, *, role: Role = "button", exact: bool = False) -> Locator:
        """Return the first visible control with `name`; a part of its name is enough unless `exact`."""
        named = self.page.get_by_role(role, name=name, exact=exact)
        return named.locator("visible=true").first

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def tab_to(self, target: Locator, *, most: int = 80) -> None:
        """Press Tab until the target has the focus; each stop on the way must be seen."""
        for _ in range(most):
            self.press("Tab")
            if problem := self.page.evaluate(_IS_FOCUS_VISIBLE):
                pytest.fail(f"{self.page.url}: {problem}", pytrace=False)
            if target.evaluate("element => element === document.activeElement"):
                return
        pytest.fail(f"{target} was not reached by {most} times Tab")

    def see(self, text: str) -> None:
        expect(self.page.get_by_text(text).first).to_be_visible()

    def fits(self) -> None:
        """Nothing of the page is wider than the window, and it has the theme."""
        assert self.page.evaluate("document.documentElement.scrollWidth") <= self.width
        dark = self.page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
        assert dark == (self.theme == "dark")

    def wait_for_poll(self, target: str, *, seconds: int) -> None:
        """Move the page's clock by `seconds`, in which the part polls once, and wait until it is swapped."""
        with self._polling(target):
            self.page.clock.run_for(seconds * 1000)
        self.page.clock.run_for(50)

    def leave_open(self, target: str, *, poll_seconds: int) -> None:
        """Leave the page alone for 130 seconds: a poll or two, then in the background, where timers are late."""
        self.wait_for_poll(target, seconds=poll_seconds)
        with self._polling(target):
            self.page.clock.fast_forward((LEFT_OPEN_SECONDS - poll_seconds) * 1000)
        self.page.clock.run_for(50)

    @contextmanager
    def _polling(self, target: str) -> Iterator[None]:
        def is_poll(request: Request) -> bool:
            return request.headers.get("hx-target") == target

        with self.page.expect_request_finished(is_poll):
            yield


Visit = Callable[..., Visitor]


@contextmanager
def visiting(browser: Browser, base_url: str) -> Iterator[Visit]:
    """Open windows of people. At the end no page may have complained of what the test did not expect."""
    visitors: list[Visitor] = []

    def visit(
        user: User, path: str, *, theme: Theme, width: int, has_clock: bool = False
    ) -> Visitor:
        """Sign in by keyboard, and come to the path."""
        user.set_password(PASSWORD)
        user.save()
        context = browser.new_context(
            base_url=base_url,
            viewport={"width": width, "height": 900 if width > 400 else 800},
            color_scheme=theme,
            reduced_motion="reduce",
        )
        context.add_init_script(_COUNT_CLICKS)
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        if has_clock:
            page.clock.install()
        visitor = Visitor(page, complaints_of(page), theme, width)
        page.on("dialog", lambda dialog: _note_dialog(visitor, dialog))
        visitors.append(visitor)
        page.goto(f"/sign-in?next={path}")
        page.keyboard.type(user.username)
        page.keyboard.press("Tab")
        page.keyboard.type(PASSWORD)
        page.keyboard.press("Enter")
        page.wait_for_url(lambda url: url.endswith(path) and "/sign-in" not in url)
        visitor.fits()
        return visitor

    try:
        yield visit
        for number, visitor in enumerate(visitors):
            take_picture(visitor.page, f"end-{number}")
            visitor.fits()
            assert _unexpected(visitor) == []
    finally:
        for visitor in visitors:
            visitor.page.context.close()


def _note_dialog(visitor: Visitor, dialog: Dialog) -> None:
    visitor.complaints.append(f"dialog: {dialog.message}")
    dialog.dismiss()


def _unexpected(visitor: Visitor) -> list[str]:
    return [
        line for line in visitor.complaints if not any(part in line for part in visitor.expected)
    ]


def take_picture(page: Page, name: str) -> None:
    if folder := os.environ.get("SLIPWAY_PICTURES"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)
