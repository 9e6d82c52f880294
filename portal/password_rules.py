"""The rules that Django applies to new passwords of local accounts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

_DJANGO: Final = "django.contrib.auth.password_validation"
_STOLEN: Final = {
    "NAME": "pwned_passwords_django.validators.PwnedPasswordsValidator",
    "OPTIONS": {
        "error_message": "This password is in published lists of stolen ones. Choose another."
    },
}


def validators(*, words: Sequence[str], looks_up_stolen: bool) -> list[dict[str, Any]]:
    """Return the AUTH_PASSWORD_VALIDATORS setting. `words` are refused beside the portal's own name."""
    return [
        {"NAME": f"{_DJANGO}.UserAttributeSimilarityValidator"},
        {"NAME": f"{_DJANGO}.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
        {"NAME": f"{_DJANGO}.CommonPasswordValidator"},
        {
            "NAME": "portal.accounts.local.password_words.PasswordWordsValidator",
            "OPTIONS": {"words": ["slipway", *words]},
        },
        *([_STOLEN] if looks_up_stolen else []),
    ]
