"""A page as people meet it: its text, and its links, buttons, rows, terms and fields by their
names.

`page(client.get("/fleet"))`, or `page(html)`. Tests that read this instead of the markup still pass
when a class or an element changes and the page reads the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any, Final

_VOID: Final = frozenset(
    [
        "area",
        "base",
        "br",
        "col",
        "embed",
        "hr",
        "img",
        "input",
        "link",
        "meta",
        "source",
        "track",
        "wbr",
    ]
)
_UNSEEN: Final = frozenset({"head", "script", "style", "template"})


@dataclass
class Part:
    """An element with all that is in it; strings among `children` are its text."""

    tag: str = ""
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Part | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Without markup; spaces and line ends are one space."""
        return " ".join("".join(self._texts()).split())

    @property
    def verbatim(self) -> str:
        """With its spaces and line ends, as code is read."""
        return "".join(self._texts())

    @property
    def is_whole_page(self) -> bool:
        """And not a fragment for HTMX."""
        return any(self.all("html"))

    def all(self, *tags: str) -> Iterator[Part]:
        for child in self.children:
            if isinstance(child, Part):
                if child.tag in tags:
                    yield child
                yield from child.all(*tags)

    def all_parts(self) -> Iterator[Part]:
        """Every element, in the order of the page."""
        for child in self.children:
            if isinstance(child, Part):
                yield child
                yield from child.all_parts()

    def part(self, name: str) -> Part:
        """The element with this id."""
        return next(part for part in self.all_parts() if part.attributes.get("id") == name)

    def group(self, summary: str) -> Part:
        """What opens at a summary that begins so."""
        return next(
            group
            for group in self.all("details")
            if next(group.all("summary")).text.startswith(summary)
        )

    @property
    def name(self) -> str:
        """What a screen reader calls it."""
        spoken = " ".join("".join(self._texts(is_spoken=True)).split())
        return self.attributes.get("aria-label") or spoken

    def link(self, name: str) -> str:
        """Where the first link of this name leads."""
        return next(part.attributes["href"] for part in self.all("a") if part.name == name)

    @property
    def links(self) -> dict[str, str]:
        """Where each leads, by its name."""
        return {part.name: part.attributes.get("href", "") for part in self.all("a")}

    @property
    def titles(self) -> list[str]:
        """What appears when one points at something."""
        return [part.attributes["title"] for part in self.all_parts() if "title" in part.attributes]

    @property
    def rows(self) -> list[dict[str, str]]:
        """Of all tables, by the name of the column."""
        return [
            {cell.attributes.get("data-label", ""): cell.text for cell in row.all("td", "th")}
            for body in self.all("tbody")
            for row in body.all("tr")
        ]

    @property
    def buttons(self) -> dict[str, Part]:
        """By their names."""
        return {part.name: part for part in self.all("button")}

    def fields(self, name: str) -> list[Part]:
        """What is typed or chosen under this name, without hidden inputs."""
        return [
            part
            for part in self.all("input", "select", "textarea")
            if part.attributes.get("name") == name and part.attributes.get("type") != "hidden"
        ]

    def field(self, name: str, value: str = "") -> Part:
        """The first of this name; with a value, that radio button or checkbox."""
        return next(
            part for part in self.fields(name) if not value or part.attributes["value"] == value
        )

    def hidden(self, name: str) -> str:
        """What a form sends under this name without showing it."""
        return next(
            part.attributes["value"]
            for part in self.all("input")
            if part.attributes.get("name") == name and part.attributes.get("type") == "hidden"
        )

    @property
    def value(self) -> str:
        """What a field holds; of a select, its chosen option."""
        if self.tag == "textarea":
            return self.verbatim.removeprefix("\n")
        if self.tag == "select":
            return next((part.value for part in self.all("option") if part.is_chosen), "")
        return self.attributes.get("value", "")

    @property
    def options(self) -> list[str]:
        """The values that a select or a list of suggestions offers."""
        return [part.value for part in self.all("option")]

    @property
    def is_chosen(self) -> bool:
        return not self.attributes.keys().isdisjoint({"checked", "selected"})

    @property
    def is_open(self) -> bool:
        return "open" in self.attributes

    @property
    def is_disabled(self) -> bool:
        return "disabled" in self.attributes

    def problem(self, field_name: str) -> str:
        """What a form says beside the field that it refuses."""
        return self.part(f"id_{field_name}_error").text

    def row(self, text: str) -> dict[str, str]:
        """The first row in which a cell has this text."""
        return next(row for row in self.rows if text in row.values())

    def terms(self, name: str) -> list[str]:
        """What a list of terms says about this one, each time it is named."""
        return [
            value.text
            for row in self.all("dl")
            for term, value in row._pairs()
            if term.text == name
        ]

    def term(self, name: str) -> str:
        (value,) = self.terms(name)
        return value

    def _pairs(self) -> Iterator[tuple[Part, Part]]:
        term = None
        for part in self.all("dt", "dd"):
            if part.tag == "dt":
                term = part
            elif term is not None:
                yield term, part

    def _texts(self, *, is_spoken: bool = False) -> Iterator[str]:
        for child in self.children:
            if isinstance(child, str):
                yield child
            elif is_spoken and child.attributes.get("aria-hidden") == "true":
                continue
            elif child.tag not in _UNSEEN:
                # Text of neighbouring blocks does not run together.
                space = (
                    ""
                    if child.tag in ("a", "b", "span", "small", "ins", "del", "em", "mark")
                    else " "
                )
                yield space
                yield from child._texts(is_spoken=is_spoken)
                yield space


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.top = Part()
        self._open = [self.top]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        part = Part(tag, {name: value or "" for name, value in attrs})
        self._open[-1].children.append(part)
        if tag not in _VOID:
            self._open.append(part)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open[-1].children.append(Part(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        names = [part.tag for part in self._open]
        if tag in names[1:]:
            del self._open[len(names) - 1 - names[::-1].index(tag) :]

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)


def page(answer: Any) -> Part:
    """`answer`: a response, or its HTML."""
    reader = _Reader()
    reader.feed(answer if isinstance(answer, str) else answer.content.decode())
    reader.close()
    return reader.top
