"""The `Warning` header of an API server: what it accepts but advises against."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

# RFC 7234, 5.5: code, agent, quoted text, and perhaps a quoted date. A proxy may join several.
_WARNING: Final = re.compile(r'\b\d{3} \S+ "((?:[^"\\]|\\.)*)"(?: "[^"]*")?')
_ESCAPED: Final = re.compile(r"\\(.)")


def parse_warnings(headers: Iterable[str]) -> list[str]:
    """Return the texts of these values of the header, each once. Anything else is left out."""
    texts = (match[1] for header in headers for match in _WARNING.finditer(header))
    return list(dict.fromkeys(_ESCAPED.sub(r"\1", text) for text in texts))
