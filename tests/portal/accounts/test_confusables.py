"""A name that people cannot tell from another account's is refused, whoever makes the account."""

# ruff: noqa: RUF001  letters that look like others are what this is about

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Any

import pytest
from django.core.cache import cache
from hypothesis import given
from hypothesis import strategies as st

from portal.accounts.local import new_accounts
from portal.accounts.models import User
from portal.accounts.oidc import sign_in
from portal.accounts.oidc.errors import SignInRefused
from portal.accounts.oidc.providers import Provider
from portal.accounts.scim import users
from portal.accounts.scim.errors import ScimError
from portal.core import identifiers
from portal.core.errors import Conflict, Invalid
from tests.accounts import make_user

LAB = Provider("lab", "Lab", "https://lab.example", "slipway", "secret")


def by_invitation(username: str) -> None:
    new_accounts.check(username=username, password="three grey herons", name="X", email="")


def by_provider(username: str) -> None:
    sign_in.sign_in(LAB, {"sub": "1", "preferred_username": username})


def by_scim(username: str) -> None:
    users.create(LAB, {"user_name": username, "external_id": "1"})


DOORS: dict[str, Callable[[str], None]] = {
    "invitation": by_invitation,
    "provider": by_provider,
    "scim": by_scim,
}
# Existing name, and another that looks the same.
ALIKE = (
    ("admin", "аdmin"),
    ("admin", "admіn"),
    ("admin", "αdmin"),
    ("admin", "ａｄｍｉｎ"),
    ("admin", "𝐚𝐝𝐦𝐢𝐧"),
    ("admin", "admın"),
    ("admin", "adⅿin"),
    ("admin", "Аdmin"),
    ("admin", "ᴀᴅᴍɪɴ"),
    ("admin", "ADMIN"),
    ("root", "r00t"),
    ("paul", "pau1"),
    ("paul", "pauI"),
    # As a whole in another script.
    ("sope", "ѕоре"),
    ("coop", "сооp"),
    ("ѕоре", "sope"),
    ("XPO", "ХРО"),
    ("vo", "νο"),
    ("ono", "օոօ"),
    ("ABE", "ꓮꓐꓰ"),
    ("DRT", "ᎠᎡᎢ"),
    ("slipwaу", "slipway"),
)
FINE = (
    "ana",
    "анна",
    "josé",
    "jörg.müller",
    "ana@example.org",
    "王小明",
    "tanaka-田中",
    "김철수",
    "Ανδρέας",
)


@pytest.mark.django_db
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(("existing", "username"), ALIKE)
def test_a_name_that_looks_like_another_is_refused(door: str, existing: str, username: str) -> None:
    cache.clear()
    make_user(username=existing)

    with pytest.raises((Invalid, Conflict, SignInRefused, ScimError)):
        DOORS[door](username)

    assert list(User.objects.values_list("username", flat=True)) == [existing]


@pytest.mark.django_db
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("username", FINE)
def test_names_of_one_script_are_accepted(door: str, username: str) -> None:
    cache.clear()
    make_user(username="admin")

    DOORS[door](username)


@pytest.mark.django_db
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("username", ["anа", "Ꭰavid", "ꓮBE", "slіpway", "٣٣٣", "ab٣"])
def test_a_mixed_or_restricted_script_is_refused_whoever_exists(door: str, username: str) -> None:
    cache.clear()

    with pytest.raises((Invalid, Conflict, SignInRefused, ScimError)):
        DOORS[door](username)

    assert not User.objects.exists()


@given(st.text(alphabet=st.characters(categories=["L", "Nd"]), min_size=1, max_size=12))
def test_any_text_has_a_skeleton_that_is_its_own(text: str) -> None:
    look = identifiers.skeleton(text)

    assert len(look) == len(unicodedata.normalize("NFKC", text))
    assert identifiers.skeleton(unicodedata.normalize("NFKC", text)) == look


@given(st.sampled_from("acdehijlopqsvwxy"), st.data())
def test_each_letter_that_looks_like_latin_mixes_scripts_in_a_latin_name(
    letter: str, data: Any
) -> None:
    """Cyrillic letters by their names in Unicode, not by the table."""
    twins = [
        chr(code)
        for code in range(0x400, 0x530)
        if identifiers.skeleton(chr(code)) == letter and chr(code) != letter
    ]
    twin = data.draw(st.sampled_from(twins))

    assert unicodedata.name(twin).startswith("CYRILLIC")
    assert identifiers.problem_with(f"b{twin}b") != ""
