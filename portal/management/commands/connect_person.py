"""Let the person of a local account sign in with a provider, by the identifier that the sign-in page showed."""

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
        parser.add_argument("provider", help="its name in SLIPWAY_OIDC")
        parser.add_argument("subject", help="the person's identifier there")

    def handle(
        self, *args: Any, username: str, provider: str, subject: str, **options: Any
    ) -> None:
        try:
            people.connect(actor=SYSTEM, username=username, provider_name=provider, subject=subject)
        except DomainError as error:
            raise CommandError(error.message) from error
        self.stdout.write(f"{username} can sign in with {provider} now.")
