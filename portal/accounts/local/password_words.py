"""Words that passwords must not contain: those that an attacker of this installation tries first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from django.contrib.auth.models import AbstractUser
from django.core.exceptions import ValidationError

# A shorter word is part of too many others.
_SHORTEST: Final = 4


class PasswordWordsValidator:
    """A validator that refuses passwords built from known words. `words`: the product, the organisation, its places
    and products; those under 4 letters are ignored.
    """

    def __init__(self, words: Sequence[str] = ()) -> None:
        self.words = tuple(word.casefold() for word in words if len(word) >= _SHORTEST)

    def validate(self, password: str, user: AbstractUser | None = None) -> None:
        text = password.casefold()
        for word in self.words:
            if word in text:
                raise ValidationError(
                    f"Leave “{word}” out: people who guess passwords try it first.",
                    code="password_word",
                )

    def get_help_text(self) -> str:
        return f"Your password can't contain {', '.join(self.words)}."
