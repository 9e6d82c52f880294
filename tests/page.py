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
    def is_whole_page(self) -> bool:
        """And not a fragment for HTMX."""
        return any(self.all("html"))

    def all(self, *tags: str) -> Iterator[Part]:
        for child in self.children:
            if isinstance(child, Part):
                if child.tag in tags:
                    yield child
                yield from child.all(*tags)

    def part(self, name: str) -> Part:
        """The element with this id."""
        return next(part for part in self._parts() if part.attributes.get("id") == name)

    @property
    def name(self) -> str:
        """What a screen reader calls it."""
        return self.attributes.get("aria-label") or self.text

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
        return [part.attributes["title"] for part in self._parts() if "title" in part.attributes]

    @property
    def rows(self) -> list[dict[str, str]]:
        """Of all tables, by the name of the column."""
        return [
            {cell.attributes.get("data-label", ""): cell.text for cell in row.all("td", "th")}
            for body in self.all("tbody")
            for row in body.all("tr")
        ]

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

    def _parts(self) -> Iterator[Part]:
        for child in self.children:
            if isinstance(child, Part):
                yield child
                yield from child._parts()

    def _texts(self) -> Iterator[str]:
        for child in self.children:
            if isinstance(child, str):
                yield child
            elif child.tag not in _UNSEEN:
                # Text of neighbouring blocks does not run together.
                space = "" if child.tag in ("a", "b", "span", "small", "ins", "del", "em") else " "
                yield space
                yield from child._texts()
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
