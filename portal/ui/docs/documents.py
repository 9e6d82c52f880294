"""The documents of docs/ as pages of the portal. Only our own files, and no HTML in them becomes markup.

Links between documents lead to their pages; those to files that are no documents are shown as text.
"""

from __future__ import annotations

import itertools
import posixpath
import re
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.utils.safestring import SafeString
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict

from portal.ui.markdown import render_code_block

INDEX: Final = "README"
_NAME: Final = re.compile(r"(?:adr/)?[A-Za-z0-9][A-Za-z0-9-]{0,120}")
_EXTERNAL: Final = ("https://", "mailto:")
_PUBLIC: Final = "/docs"


@dataclass(frozen=True, slots=True)
class Heading:
    level: int
    text: str
    anchor: str


@dataclass(frozen=True, slots=True)
class Document:
    title: str
    html: SafeString
    headings: tuple[Heading, ...]


def read(name: str) -> Document | None:
    """Read a document by name. None if there is no such document, whatever the name tries to be."""
    if not _NAME.fullmatch(name):
        return None
    path = _root() / f"{name}.md"
    # Names have no dots, so nothing outside the folder is reached.
    return _render(name, path) if path.is_file() else None


def address_of(name: str, anchor: str = "") -> str:
    base = _PUBLIC if name == INDEX else f"{_PUBLIC}/{name}"
    return f"{base}#{anchor}" if anchor else base


def _root() -> Path:
    return Path(settings.FILES_DIR) / "docs"


@lru_cache(maxsize=200)
def _render(name: str, path: Path) -> Document:
    """Render a document once for each process: the files come with the release."""
    markdown = _markdown()
    tokens = markdown.parse(path.read_text(encoding="utf-8"), {})
    headings = _name_headings(tokens)
    for token in tokens:
        _lead_links(token.children or [], folder=posixpath.dirname(name))
    html = markdown.renderer.render(tokens, markdown.options, {})
    title = headings[0].text if headings else name
    return Document(title, SafeString(html), headings)


def _name_headings(tokens: Sequence[Token]) -> tuple[Heading, ...]:
    """Anchors as GitHub makes them, so that links hold in both places."""
    found: list[Heading] = []
    for opening, inline in itertools.pairwise(tokens):
        if opening.type != "heading_open":
            continue
        text = "".join(
            t.content for t in inline.children or [] if t.type in ("text", "code_inline")
        )
        anchor = _anchor(text)
        same = sum(heading.anchor == anchor for heading in found)
        anchor = f"{anchor}-{same}" if same else anchor
        opening.attrSet("id", anchor)
        found.append(Heading(int(opening.tag[1:]), text, anchor))
    return tuple(found)


def _anchor(text: str) -> str:
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def _lead_links(tokens: Sequence[Token], *, folder: str) -> None:
    stack: list[bool] = []
    for token in tokens:
        if token.type == "link_open":
            target = _target(str(token.attrs.get("href", "")), folder)
            stack.append(bool(target))
            if target:
                token.attrs = {"href": target, "class": "link"}
            else:
                token.tag, token.attrs = "span", {}
        elif token.type == "link_close" and not stack.pop():
            token.tag = "span"


def _target(href: str, folder: str) -> str:
    """Return where a link leads inside the portal. Empty if it has no page here."""
    if href.startswith((*_EXTERNAL, "#")):
        return href
    path, _, anchor = href.partition("#")
    resolved = posixpath.normpath(posixpath.join(folder, path))
    name = resolved.removesuffix(".md")
    if resolved == "openapi.yaml":
        return "/docs/api"
    if not resolved.endswith(".md") or not _NAME.fullmatch(name):
        return ""
    return address_of(name, anchor) if (_root() / resolved).is_file() else ""


def _markdown() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    markdown.add_render_rule("fence", render_code_block)
    markdown.add_render_rule("code_block", render_code_block)
    markdown.add_render_rule("table_open", _table_open)
    markdown.add_render_rule("table_close", _table_close)
    return markdown


def _table_open(
    renderer: RendererHTML,
    tokens: Sequence[Token],
    position: int,
    options: OptionsDict,
    environment: MutableMapping[str, Any],
) -> str:
    """Wide tables scroll by themselves, also by keyboard."""
    return '<div class="scroll" tabindex="0" role="group"><table>'


def _table_close(
    renderer: RendererHTML,
    tokens: Sequence[Token],
    position: int,
    options: OptionsDict,
    environment: MutableMapping[str, Any],
) -> str:
    return "</table></div>"
