"""What a new password may not be: a word of the installation, or one of the stolen ones."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import httpx
import pytest
import respx
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from pwned_passwords_django.validators import PwnedPasswordsValidator

from portal.accounts.local.password_words import PasswordWordsValidator

STOLEN = "correct horse battery staple"
_PRINT = (
    "from django.conf import settings as s; print([v['NAME'] for v in s.AUTH_PASSWORD_VALIDATORS])"
)


@pytest.mark.parametrize("password", ["Slipway-2026-11", "my SLIPWAY account", "acmeacmeacme"])
def test_a_word_of_the_installation_is_named(password: str) -> None:
    validator = PasswordWordsValidator(["slipway", "Acme", "it"])

    with pytest.raises(ValidationError, match=r"Leave “(slipway|acme)” out"):
        validator.validate(password)


def test_other_passwords_and_words_of_three_letters_pass() -> None:
    PasswordWordsValidator(["slipway", "Acme", "it"]).validate("with two brown otters")


def test_the_portal_refuses_its_own_name() -> None:
    with pytest.raises(ValidationError, match="Leave “slipway” out"):
        validate_password("the slipway of otters")


@respx.mock
def test_a_stolen_password_is_refused_and_only_five_letters_of_its_hash_are_sent() -> None:
    digest = hashlib.sha1(STOLEN.encode(), usedforsecurity=False).hexdigest().upper()
    answer = httpx.Response(200, text=f"{digest[5:]}:42\n{'0' * 35}:0")
    asked = respx.get(url__startswith="https://api.pwnedpasswords.com/").mock(return_value=answer)

    with pytest.raises(ValidationError):
        PwnedPasswordsValidator().validate(STOLEN)

    assert asked.calls.last.request.url.path == f"/range/{digest[:5]}"


@respx.mock
def test_a_service_that_is_away_keeps_nobody_from_a_password() -> None:
    respx.get(url__startswith="https://api.pwnedpasswords.com/").mock(
        side_effect=httpx.ConnectError("away")
    )

    PwnedPasswordsValidator().validate(STOLEN)


@pytest.mark.parametrize(("setting", "is_asked"), [("1", True), ("0", False)])
def test_the_lists_are_queried_where_the_platform_says_so(setting: str, is_asked: bool) -> None:
    environment = {**os.environ, "SLIPWAY_BREACHED_PASSWORDS": setting}
    done = subprocess.run(
        [sys.executable, "-c", _PRINT], env=environment, check=True, capture_output=True, text=True
    )

    assert ("PwnedPasswordsValidator" in done.stdout) is is_asked
