"""A local account: a username that nobody has, and a password that passes Django's validators."""

from __future__ import annotations

from typing import Final

from django.contrib.auth.password_validation import validate_password
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from portal.accounts import usernames
from portal.accounts.models import User
from portal.accounts.policy import SYSTEM
from portal.audit import trail
from portal.audit.actions import register
from portal.core import clock
from portal.core.errors import Conflict, Invalid

CREATED: Final = register("person.created", "created the account of")
_MAX_USERNAME: Final = 150
# Argon2 reads all of it.
MAX_PASSWORD: Final = 1024
_is_username = UnicodeUsernameValidator()


def check(*, username: str, password: str, name: str, email: str) -> User:
    """Check and return an account that is not saved yet. Raises Invalid and Conflict. Hashing takes 100 MiB for a
    moment.
    """
    username = User.normalize_username(username.strip())
    try:
        _is_username(username)
    except ValidationError as error:
        raise Invalid(
            "Choose another username.", fields={"username": "Use letters, digits and @ . + - _"}
        ) from error
    if len(username) > _MAX_USERNAME:
        raise Invalid(
            "Choose a shorter username.",
            fields={"username": f"{_MAX_USERNAME} characters at most"},
        )
    if username.lower() == SYSTEM.name or usernames.find_alike(username) is not None:
        raise _taken(username)
    if problem := usernames.problem_with(username):
        raise Invalid(f"Choose another username: {problem}.", fields={"username": problem})
    first, _, last = name.partition(" ")
    user = User(username=username, first_name=first, last_name=last, email=email)
    set_password(user, password)
    return user


def set_password(user: User, password: str) -> None:
    """Set a password without saving the user. Raises Invalid with the messages of the validators."""
    if len(password) > MAX_PASSWORD:
        raise Invalid(
            f"Use a password of {MAX_PASSWORD} characters at most.",
            fields={"password": "too long"},
        )
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise Invalid(
            "Choose another password.", fields={"password": " ".join(error.messages)}
        ) from error
    user.set_password(password)


def create(user: User, *, reason: str) -> User:
    """Save what `check` returned, inside the caller's transaction."""
    user.date_joined = clock.now()
    try:
        with transaction.atomic():
            user.save(force_insert=True)
    except IntegrityError as error:
        raise _taken(user.username) from error
    trail.record(
        actor=SYSTEM,
        action=CREATED,
        obj=user,
        label=user.username,
        after={"email": user.email},
        reason=reason,
    )
    return user


def _taken(username: str) -> Conflict:
    return Conflict(
        f"The username {username}, or one that looks like it, is taken. Choose another one.",
        code="username_taken",
        fields={"username": "taken"},
    )
