"""External servers: mail, and the providers that people sign in with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from django.conf import settings

from portal.accounts.oidc import gateway as oidc
from portal.accounts.oidc.errors import ProviderUnavailable
from portal.doctor.lines import Line, note, ok, report_failed
from portal.doctor.registry import check
from portal.notifications import mail_server

_MAIL: Final = (
    "Check host, port, user and password of SLIPWAY_SMTP_URL, and the network path to the server."
)


@check("e-mail", "Mail server", fix=_MAIL)
def mail() -> Iterator[Line]:
    """Check the mail server up to the sign-in. Nothing is sent."""
    if not settings.SLIPWAY_SMTP_URL:
        fix = "Set SLIPWAY_SMTP_URL, or ask people to use Slack, Teams or webhooks."
        yield note("Mail server", "not set: no messages and no links by e-mail", fix)
        return
    problem = mail_server.problem_with(settings.SLIPWAY_SMTP_URL)
    if problem:
        yield report_failed("Mail server", problem, _MAIL)
    else:
        yield ok("Mail server", "accepts mail")
    if settings.SLIPWAY_SMTP_FROM.endswith("@localhost"):
        fix = "Set SLIPWAY_SMTP_FROM to an address that the server may send from."
        yield report_failed("Sender", f"{settings.SLIPWAY_SMTP_FROM} is rejected elsewhere", fix)


@check("sign-in", "Providers", fix="Check the provider's variables in docs/sign-in.md.")
def providers() -> Iterator[Line]:
    if not settings.SLIPWAY_OIDC:
        fix = "Set SLIPWAY_OIDC, so that people who leave the company lose their access here too."
        yield note("Providers", "none: people sign in with a password of the portal", fix)
    for provider in settings.SLIPWAY_OIDC:
        name = f"Provider {provider.name}"
        try:
            oidc.check(provider)
        except ProviderUnavailable as error:
            variable = f"SLIPWAY_OIDC_{provider.name.upper().replace('-', '_')}_ISSUER"
            fix = f"Check {variable} and the network path from the portal to it."
            yield report_failed(name, error.message, fix)
            continue
        yield ok(name, f"{provider.issuer} answers")
        if not provider.required and not provider.rules:
            fix = f"Set its rules or required claims: docs/sign-in.md, {provider.name}."
            yield note(name, "everyone who can sign in there gets an account here", fix)
