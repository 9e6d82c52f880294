"""Takes every page of a running portal at 1280 and 375 px, light and dark, for people to review.

    python -m tests.screenshots http://127.0.0.1:8000 --user lead --password … --out shots

Without --page it visits the rail's pages and, of each list, the first thing listed. It also
prints what a picture does not show: console errors, refused content, pages wider than the screen,
controls without a name, ids given twice, and controls that stand outside their card.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

WIDTHS = (1280, 375)
THEMES = ("light", "dark")
PAGES = (
    "/",
    "/vision",
    "/vision/models",
    "/vision/upload",
    "/vision/import",
    "/vision/deployments",
    "/vision/deployments/new",
    "/vision/pipelines",
    "/vision/register",
    "/vision/batch",
    "/vision/batch/new",
    "/approvals",
    "/quarantined-in-use",
    "/fleet",
    "/fleet/actions",
    "/fleet/pools",
    "/costs",
    "/costs/ledger",
    "/advice",
    "/what-if?case=a",
    "/audit",
    "/admin",
    "/admin/clusters",
    "/admin/clusters/new",
    "/admin/people",
    "/admin/policy",
    "/admin/signing",
    "/admin/signing/roots/1",
    "/admin/signing/roots/1/remove",
    "/admin/token-issuers",
    "/admin/environments",
    "/ui/",
    "/docs/api",
    "/docs/api/deployments",
    "/docs",
    "/docs/environments",
    "/account/second-factor/passkeys",
    "/admin/provisioning",
    "/admin/environments/production",
    "/admin/prices",
    "/account/notifications",
    "/account/second-factor",
    "/account/security",
    "/account/tokens",
    "/jump?q=v",
    "/no-such-page",
)
# On each of these, the first link with this pattern is visited as well, and the pages below it.
_LISTED = {
    "/vision/models": (r"^/[^/]+/models/[^/]+$", ("/1", "/edit", "/golden-requests/new")),
    "/vision/deployments": (
        r"^/[^/]+/deployments/(?!new)[^/]+$",
        (
            "/rollout",
            "/revisions",
            "/manifests",
            "/timeline",
            "/logs",
            "/targets",
            "/try",
            "/cost",
            "/canary",
            "/scale",
            "/roll-back",
            "/stop",
            "/retire",
        ),
    ),
    "/approvals": (r"^/approvals/\d+$", ()),
    "/admin": (
        r"^/admin/teams/[^/]+$",
        ("/delivery", "/notifications", "/rollout-templates", "/deployment-presets"),
    ),
    "/admin/clusters": (r"^/admin/clusters/\d+$", ("/edit",)),
}
# What axe would find first, without its 500 kB.
_UNFIT = """() => {
  const visible = (node) => node.checkVisibility();
  const shown = [...document.querySelectorAll("main input, main select, main textarea, main button, main a[href], summary")].filter(visible);
  const named = (node) => node.getAttribute("aria-label") || node.getAttribute("aria-labelledby") || node.title ||
    node.type === "hidden" || node.labels?.length || node.textContent.trim();
  const nameless = shown.filter((node) => !named(node)).map((node) => `without a name: ${node.outerHTML.slice(0, 120)}`);
  const ids = [...document.querySelectorAll("[id]")].map((node) => node.id);
  const twice = [...new Set(ids.filter((id, index) => ids.indexOf(id) !== index))].map((id) => `id twice: ${id}`);
  const outside = shown.filter((node) => {
    const card = node.closest(".card");
    if (!card || node.closest(".scroll, .tabs, .segments, .sr, .choice, .code")) return false;
    return node.getBoundingClientRect().right > card.getBoundingClientRect().right + 1;
  }).map((node) => `outside its card: ${node.outerHTML.slice(0, 120)}`);
  const levels = [...document.querySelectorAll("main h1")].length;
  return [...nameless, ...twice, ...outside, ...(levels === 1 ? [] : [`${levels} h1`])];
}"""


@dataclass
class Report:
    complaints: list[str] = field(default_factory=list)

    def watch(self, page: Page) -> None:
        page.on("pageerror", lambda error: self.complaints.append(f"{page.url}: {error}"))
        page.on(
            "console",
            lambda line: (
                self.complaints.append(f"{page.url}: {line.text}")
                if line.type == "error" and not re.search("40[34]", line.text)
                else None
            ),
        )


def chromium_path() -> str | None:
    """Debian's Chromium; None where it is not installed. Its headless shell has the same engine without the parts
    of a browser around it, and takes two thirds of the processor time.
    """
    names = ("chromium-headless-shell", "chromium", "chromium-browser")
    return next((path for name in names if (path := shutil.which(name))), None)


@contextmanager
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=chromium_path(), args=["--no-sandbox", "--hide-scrollbars"]
        )
        yield running
        running.close()


def sign_in(page: Page, base: str, user: str, password: str) -> None:
    page.goto(f"{base}/sign-in?next=/account/tokens")
    page.fill("input[name=username]", user)
    page.fill("input[name=password]", password)
    page.click("button[type=submit]")
    page.wait_for_load_state("networkidle")


def take(page: Page, base: str, path: str, target: Path, report: Report) -> None:
    """One visit, one picture a theme: `target` gets the theme's name."""
    page.goto(f"{base}{path}")
    if page.locator("[data-chart]").count():
        page.wait_for_selector("[data-chart] .plot svg, [data-chart] .plot.failed", timeout=15_000)
    wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    if wide > 0:
        report.complaints.append(f"{path}: {wide} px wider than the screen of {target.stem}")
    report.complaints += [f"{path}: {complaint}" for complaint in page.evaluate(_UNFIT)]
    for theme in THEMES:
        page.evaluate("theme => document.documentElement.dataset.theme = theme", theme)
        page.screenshot(path=f"{target}-{theme}.png", full_page=True)


def with_first_listed(page: Page, base: str, paths: Sequence[str]) -> list[str]:
    rows = list(paths)
    for path in paths:
        if path not in _LISTED:
            continue
        pattern, below = _LISTED[path]
        page.goto(f"{base}{path}")
        hrefs = page.eval_on_selector_all("main a", "a => a.map(x => x.getAttribute('href'))")
        for first in [href for href in hrefs if re.match(pattern, href or "")][:1]:
            rows += [first, *(f"{first}{end}" for end in below)]
    return rows


def _name_of(path: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", path.strip("/").lower()).strip("-") or "home"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("base")
    parser.add_argument("--user", required=True)
    parser.add_argument("--password", required=True)
    parser.add_argument("--out", type=Path, default=Path("var/screenshots"))
    parser.add_argument("--page", action="append", default=[])
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    report = Report()
    with browser() as running:
        context = running.new_context()
        page = context.new_page()
        report.watch(page)
        sign_in(page, options.base, options.user, options.password)
        paths = options.page or with_first_listed(page, options.base, PAGES)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 800})
            for path in paths:
                take(page, options.base, path, options.out / f"{_name_of(path)}-{width}", report)
    for complaint in dict.fromkeys(report.complaints):
        sys.stdout.write(f"{complaint}\n")
    return 1 if report.complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
