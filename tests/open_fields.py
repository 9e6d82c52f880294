"""The open fields of a form: those that are visible before anything is unfolded."""

from __future__ import annotations

from collections.abc import Iterator

from tests.page import Part

_FIELDS = ("input", "select", "textarea")
_BUTTONS = ("hidden", "submit", "button", "reset", "image")
# Shown by static/js/slipway.js on request, or only where there are no scripts.
_UNSEEN_CLASSES = {"spare", "no-script", "only-queue"}


def list_open_fields(form: Part) -> list[str]:
    """List the names of the open fields; of a group of radio buttons, one."""
    names: list[str] = []
    for part in _visible(form):
        if part.tag not in _FIELDS or part.attributes.get("type") in _BUTTONS:
            continue
        name = part.attributes.get("name") or part.attributes.get("id", "")
        if part.attributes.get("type") != "radio" or name not in names:
            names.append(name)
    return names


def find_form(page: Part, field_name: str) -> Part:
    """Return the form that has a field of this name."""
    return next(form for form in page.all("form") if form.fields(field_name))


def _visible(part: Part) -> Iterator[Part]:
    for child in part.children:
        if isinstance(child, str) or _is_hidden(child):
            continue
        yield child
        if child.tag == "details" and not child.is_open:
            continue
        yield from _visible(child)


def _is_hidden(part: Part) -> bool:
    classes = set(part.attributes.get("class", "").split())
    is_unseen = bool(classes & _UNSEEN_CLASSES) and "shown" not in classes
    return "hidden" in part.attributes or part.tag == "template" or is_unseen
