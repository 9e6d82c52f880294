"""The commands of a document, in its order, for tests that run them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PUBLIC = "https://slipway.example.org"


def text_of(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text()


def lines_of(name: str) -> list[str]:
    """Of all blocks of shell commands."""
    blocks = re.findall(r"^```bash\n(.+?)^```$", text_of(name), re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line]


def commands_of(name: str, program: str) -> list[list[str]]:
    """The arguments of each call of the program."""
    split = [shlex.split(line, comments=True) for line in lines_of(name)]
    return [words[1:] for words in split if words[0] == program]


def filled(text: str, values: Mapping[str, object]) -> str:
    """As a shell replaces $NAME. A name without a value is an error."""
    return re.sub(r"\$([A-Z_]+)", lambda match: str(values[match[1]]), text)
