"""Lucide's icons as inline SVG. The package opens its archive of 1,745 files anew for each icon; it is read once here."""

from __future__ import annotations

import functools
from importlib.resources import files
from io import BytesIO
from xml.etree import ElementTree
from zipfile import ZipFile

from django.utils.safestring import SafeString

_NAMESPACE = "http://www.w3.org/2000/svg"


@functools.lru_cache(maxsize=256)
def svg(name: str, size: int) -> SafeString:
    """Return a decorative icon of `size` pixels, which screen readers skip.

    Raises KeyError if Lucide has no such icon.
    """
    element = ElementTree.fromstring(_archive().read(f"{name}.svg"))  # noqa: S314  of the package itself
    for node in element.iter():
        node.tag = node.tag.removeprefix(f"{{{_NAMESPACE}}}")
    element.attrib |= {
        "width": str(size),
        "height": str(size),
        "aria-hidden": "true",
        "focusable": "false",
    }
    return SafeString(ElementTree.tostring(element, encoding="unicode"))


@functools.cache
def _archive() -> ZipFile:
    """Open the archive of icons in memory: forked processes would share the position in an open file."""
    return ZipFile(BytesIO(files("lucide").joinpath("lucide.zip").read_bytes()))
