"""What the pages of a test complained about: exceptions, and errors in the browser's console."""

from __future__ import annotations

from playwright.sync_api import ConsoleMessage, Page

# How htmx reports a request that was given up because another replaced it, or because the page was left.
# One that fails is reported as htmx:sendError or htmx:responseError beside it.
_GIVEN_UP = ("htmx:afterRequest", "htmx:sendAbort")


def complaints_of(page: Page, *, expected: str = "") -> list[str]:
    """Grows with the page; `expected` is a part of errors that the test causes."""
    complaints: list[str] = []

    def note(line: ConsoleMessage) -> None:
        is_expected = bool(expected) and expected in line.text
        if line.type == "error" and not line.text.startswith(_GIVEN_UP) and not is_expected:
            complaints.append(line.text)

    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", note)
    return complaints
