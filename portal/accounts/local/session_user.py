"""The person of a browser's request: read with the session, and checked as django.contrib.auth checks it."""

from __future__ import annotations

from typing import Final

from django.conf import settings
from django.contrib.auth import (
    BACKEND_SESSION_KEY,
    HASH_SESSION_KEY,
    SESSION_KEY,
    get_user,
)
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest
from django.utils.crypto import constant_time_compare

from portal.accounts.models import User

_BACKEND: Final = "django.contrib.auth.backends.ModelBackend"


def user_of(request: HttpRequest) -> AnonymousUser | AbstractBaseUser:
    """Return the user of a request as `django.contrib.auth.get_user` does, in one query with the session. Django
    decides about what is not plainly valid, such as a session from before a change of the password or of the
    secret key.
    """
    session = request.session
    # Loads the session.
    person_id, backend = session.get(SESSION_KEY), session.get(BACKEND_SESSION_KEY)
    person: User | None = getattr(session, "person", None)
    if (
        person is not None
        and person_id == str(person.pk)
        and backend == _BACKEND
        and backend in settings.AUTHENTICATION_BACKENDS
        and person.is_active
        and _is_of_password(session.get(HASH_SESSION_KEY), person)
    ):
        return person
    return get_user(request)


def _is_of_password(stored: str | None, person: User) -> bool:
    return stored is not None and constant_time_compare(stored, person.get_session_auth_hash())
