"""Markdown that people wrote, as HTML that is safe to show to others.

Raw HTML stays text, addresses with another scheme than http, https and mailto are no links, and an
image becomes a link to it: a page never loads what a README names.
"""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from typing import Any, Final

from django.utils.html import escape
from django.utils.safestring import SafeString
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict

_SCHEMES: Final = ("http://", "https://", "mailto:")


class _Markdown(MarkdownIt):
    def validateLink(self, url: str) -> bool:  # noqa: N802  the library's name
        return url.strip().lower().startswith(_SCHEMES) or url.startswith("#")


def render(text: str) -> SafeString:
    return SafeString(_MARKDOWN.render(text))


def render_line(text: str) -> SafeString:
    """Render a line without a paragraph of its own, for the cell of a table."""
    return SafeString(_MARKDOWN.renderInline(text))


def _image(
    renderer: RendererHTML,
    tokens: Sequence[Token],
    position: int,
    options: OptionsDict,
    environment: MutableMapping[str, Any],
) -> str:
    image = tokens[position]
    text = renderer.renderInlineAsText(image.children or [], options, environment)
    link = Token("link_open", "a", 1, attrs={"href": image.attrs["src"], **_LINK})
    shown = Token("text", "", 0, content=text or str(image.attrs["src"]))
    return (
        renderer.renderToken([link], 0, options, environment)
        + renderer.text([shown], 0, options, environment)
        + "</a>"
    )


def _link_open(
    renderer: RendererHTML,
    tokens: Sequence[Token],
    position: int,
    options: OptionsDict,
    environment: MutableMapping[str, Any],
) -> str:
    for name, value in _LINK.items():
        tokens[position].attrSet(name, value)
    return renderer.renderToken(tokens, position, options, environment)


def render_code_block(
    renderer: RendererHTML,
    tokens: Sequence[Token],
    position: int,
    options: OptionsDict,
    environment: MutableMapping[str, Any],
) -> str:
    """Render a block of code that keyboards can scroll."""
    block = tokens[position]
    language = block.info.strip().partition(" ")[0]
    kind = f' class="language-{escape(language)}"' if language else ""
    return f'<pre tabindex="0"><code{kind}>{escape(block.content)}</code></pre>\n'


_LINK: Final = {"rel": "noopener noreferrer nofollow", "class": "link"}


def _markdown() -> MarkdownIt:
    markdown = _Markdown("commonmark", {"html": False}).enable(["table", "strikethrough"])
    markdown.add_render_rule("image", _image)
    markdown.add_render_rule("link_open", _link_open)
    markdown.add_render_rule("fence", render_code_block)
    markdown.add_render_rule("code_block", render_code_block)
    return markdown


_MARKDOWN: Final = _markdown()
