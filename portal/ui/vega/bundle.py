"""Vega-Embed for the browser, from the wheel that also renders charts on the server."""

from __future__ import annotations

import gzip
from functools import cache
from importlib.metadata import version as version_of

import vl_convert

# Part of the URL, so that browsers may cache the file without limit.
_SNIPPET = "window.vegaEmbed = vegaEmbed;"
VERSION = version_of("vl-convert-python")


@cache
def compress_bundle() -> bytes:
    """Return the gzipped script. Bundling takes over a second, so each process does it once, on demand."""
    return gzip.compress(vl_convert.javascript_bundle(_SNIPPET).encode(), mtime=0)
