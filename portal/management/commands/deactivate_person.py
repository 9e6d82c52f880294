"""End a person's sessions, API tokens and delegations, and let them sign in no more."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.accounts import people
from portal.accounts.policy import SYSTEM
from portal.core.errors import DomainError


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--undo", action="store_true", help="let them sign in again")
        parser.add_argument("--reason", default="", help="for the audit trail")

    def handle(self, *args: Any, username: str, undo: bool, reason: str, **options: Any) -> None:
        change = people.reactivate if undo else people.deactivate
        try:
            change(actor=SYSTEM, username=username, reason=reason)
        except DomainError as error:
            raise CommandError(error.message) from error
        self.stdout.write(f"{username} is {'active again' if undo else 'deactivated'}.")
