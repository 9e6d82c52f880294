"""Names of models, aliases and files, with a message for those that cannot be used.

A model's name is the Triton model directory and becomes part of Kubernetes names and URLs.
"""

from __future__ import annotations

import re
from typing import Final

LONGEST_MODEL_NAME: Final = 40
LONGEST_ALIAS: Final = 40
# By convention what production serves, so moving it is restricted.
_PROTECTED_BY_DEFAULT: Final = frozenset({"champion"})
_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_SHA256 = re.compile(r"[0-9a-f]{64}")


def model_name_problem(name: str) -> str:
    """Say what is wrong with the model's name and how to fix it. Empty when nothing is."""
    return _problem(name, what="model", longest=LONGEST_MODEL_NAME, example="detector")


def alias_problem(name: str) -> str:
    return _problem(name, what="alias", longest=LONGEST_ALIAS, example="champion")


def is_protected_by_default(alias: str) -> bool:
    return alias in _PROTECTED_BY_DEFAULT


def is_sha256(text: str) -> bool:
    return _SHA256.fullmatch(text) is not None


def _problem(name: str, *, what: str, longest: int, example: str) -> str:
    if not name:
        return f"Enter a {what} name, for example '{example}'."
    if len(name) > longest:
        return f"'{name[:longest]}…' has {len(name)} characters. Shorten it to {longest}."
    if _NAME.fullmatch(name) is None:
        fixed = _fix(name, longest)
        hint = f" For example '{fixed}'." if fixed else ""
        return (
            f"'{name}' is not a valid {what} name: use lowercase letters, digits and '-', "
            f"start with a letter and end with a letter or digit.{hint}"
        )
    return ""


def _fix(text: str, longest: int) -> str:
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower())
    return re.sub(r"^[^a-z]+", "", plain)[:longest].strip("-")
