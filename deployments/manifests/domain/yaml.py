"""Write manifests as YAML: deterministic, and the same text as PyYAML's at several times its speed.

Maps, lists, strings, integers and booleans are written here. PyYAML decides how a string is quoted,
once per distinct string. A manifest with any other value is left to PyYAML.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import yaml

# No line is ever folded, so that a difference shows in the line where it is.
_WIDTH: Final = 2**20
# PyYAML writes other keys in another style.
_KEY: Final = re.compile(r"[-A-Za-z0-9_./]{1,100}")


class _Unsupported(Exception):
    """A value whose style in PyYAML depends on its position."""


class _Dumper(yaml.CSafeDumper):
    """A dumper without anchors, which are unusual in manifests."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


# PyYAML reads YAML 1.1 in its own way; kubectl, Argo CD and Flux read these as numbers and booleans too,
# and refuse an annotation such as a digest of digits and one "e". Plain, they would be no strings there.
for tag, pattern, first in (
    (
        "float",
        r"[-+]?(\.[0-9_]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9_]+)?",
        "-+.0123456789",
    ),
    ("int", r"[-+]?0o[0-7_]+", "-+0"),
    ("bool", r"[yYnN]", "yYnN"),
):
    _Dumper.add_implicit_resolver(
        f"tag:yaml.org,2002:{tag}", re.compile(f"^(?:{pattern})$"), list(first)
    )


def to_yaml(manifests: Sequence[Mapping[str, Any]]) -> str:
    """Write manifests as YAML, byte-identical for equal manifests."""
    return "---\n".join(_text_of(manifest) for manifest in manifests)


def by_library(manifest: Any) -> str:
    return str(
        yaml.dump(manifest, Dumper=_Dumper, sort_keys=True, default_flow_style=False, width=_WIDTH)
    )


def _text_of(manifest: Mapping[str, Any]) -> str:
    lines: list[str] = []
    try:
        _put_map(manifest, "", "", lines)
    except _Unsupported:
        return by_library(manifest)
    lines.append("")
    return "\n".join(lines)


def _put_map(value: Mapping[str, Any], lead: str, indent: str, lines: list[str]) -> None:
    """Append a map. `lead` precedes the first line: the indentation, or the dash of a list item."""
    if not value:
        raise _Unsupported
    for key in sorted(value):
        head, item = f"{lead}{_key(key)}:", value[key]
        if isinstance(item, dict) and item:
            lines.append(head)
            _put_map(item, f"{indent}  ", f"{indent}  ", lines)
        elif isinstance(item, list) and item:
            lines.append(head)
            _put_list(item, indent, lines)
        else:
            lines.append(f"{head} {_leaf(item, indent)}")
        lead = indent


def _put_list(value: Sequence[Any], indent: str, lines: list[str]) -> None:
    """Append a list. Dashes are aligned with the key, as PyYAML and kubectl write them."""
    for item in value:
        if isinstance(item, dict) and item:
            _put_map(item, f"{indent}- ", f"{indent}  ", lines)
        elif isinstance(item, list) and item:
            raise _Unsupported
        else:
            lines.append(f"{indent}- {_leaf(item, indent)}")


@lru_cache(maxsize=65536)
def _key(key: Any) -> str:
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise _Unsupported
    return _leaf(key, "")


def _leaf(value: Any, indent: str) -> str:
    if type(value) is str:
        text = _quoted(value)
        return text if "\n" not in text else _indented(text, indent)
    if type(value) is int:
        return str(value)
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) not in _EMPTY:
        raise _Unsupported
    return _EMPTY[type(value)]


def _indented(text: str, indent: str) -> str:
    """Return a string over several lines: each but the first and the empty ones two columns further in."""
    first, *rest = text.split("\n")
    return "\n".join([first, *(f"{indent}{line}" if line else "" for line in rest)])


_EMPTY: Final[Mapping[type, str]] = {dict: "{}", list: "[]", type(None): "null"}


@lru_cache(maxsize=65536)
def _quoted(text: str) -> str:
    return str(yaml.dump([text], Dumper=_Dumper, width=_WIDTH))[2:-1]
