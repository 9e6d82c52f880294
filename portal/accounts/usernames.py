"""Usernames that people can tell apart: one script, and none that looks like another account's."""

from __future__ import annotations

from django.db.models.functions import Length

from portal.accounts.models import User
from portal.accounts.policy import SYSTEM
from portal.core import identifiers


def problem_with(username: str) -> str:
    """Return why an account cannot get this name, whoever has which. Empty if it can. The name is normalized."""
    if identifiers.skeleton(username) == SYSTEM.name:
        return "it looks like the portal's own name"
    return identifiers.problem_with(username)


def find_alike(username: str) -> User | None:
    """Find the account whose name is the same or looks the same."""
    look = identifiers.skeleton(username)
    same_length = User.objects.annotate(length=Length("username")).filter(length=len(username))
    for pk, other in same_length.order_by("pk").values_list("pk", "username"):
        if other.lower() == username.lower() or identifiers.skeleton(other) == look:
            return User.objects.get(pk=pk)
    return None
