"""Settings: what Django and the portal know to be wrong, and what only a real installation needs."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.staticfiles.storage import staticfiles_storage
from django.core import checks as django_checks

from portal.doctor.lines import Line, note, ok, report_failed
from portal.doctor.registry import check

_AREA: Final = "settings"
_PAGE_STYLE: Final = "css/slipway.css"
# Django asks for what the settings do on purpose: the proxy redirects, or the portal's own setting says so.
_OURS: Final = {
    "security.W004": "Set SLIPWAY_HTTPS=1 behind a proxy that ends TLS and sets X-Forwarded-Proto.",
    "security.W008": "Set SLIPWAY_HTTPS=1 behind a proxy that ends TLS and sets X-Forwarded-Proto.",
    "security.W009": "Set SLIPWAY_SECRET_KEY to the output of `openssl rand -base64 48`.",
    "security.W012": "Set SLIPWAY_HTTPS=1, so that cookies are sent over TLS only.",
    "security.W016": "Set SLIPWAY_HTTPS=1, so that cookies are sent over TLS only.",
    "security.W018": "Set SLIPWAY_DEBUG=0: its pages show settings and code to everyone.",
    "security.W020": "Set SLIPWAY_ALLOWED_HOSTS to the host names of the portal.",
}


@check(_AREA, "Settings", fix="Correct the setting that the message names.")
def system_checks() -> Iterator[Line]:
    """Run the system checks of Django and the portal, including Django's deployment checks."""
    messages = django_checks.run_checks(include_deployment_checks=True)
    for message in messages:
        if message.is_silenced() or not (message.is_serious() or message.id in _OURS):
            continue
        fix = _OURS.get(message.id or "", message.hint or "Correct the setting that is named.")
        yield report_failed("Settings", f"{message.msg} ({message.id})", fix)
    if not any(message.id in _OURS or message.is_serious() for message in messages):
        yield ok("Settings", "all checks of Django and of the portal pass")


@check(_AREA, "Demo", fix="Unset SLIPWAY_DEMO.")
def no_demo() -> Iterator[Line]:
    if settings.SLIPWAY_DEMO:
        yield report_failed(
            "Demo",
            "SLIPWAY_DEMO is on: plain HTTP, and static files without a build step",
            "Unset SLIPWAY_DEMO. It is for `make demo` only.",
        )


@check(_AREA, "Host names", fix="Set SLIPWAY_ALLOWED_HOSTS to the host names of the portal.")
def host_names() -> Iterator[Line]:
    hosts = settings.ALLOWED_HOSTS
    public = [host for host in hosts if not _is_loopback(host)]
    if "*" in hosts:
        yield report_failed(
            "Host names",
            "SLIPWAY_ALLOWED_HOSTS has *, so links in pages can lead to any host that a client names",
            "List the host names of the portal in SLIPWAY_ALLOWED_HOSTS.",
        )
    elif not public:
        yield report_failed(
            "Host names",
            f"the portal answers to {', '.join(hosts) or 'no host'} only",
            "Add its public host name to SLIPWAY_ALLOWED_HOSTS.",
        )
    else:
        yield ok("Host names", ", ".join(public))


@check(_AREA, "Public address", fix="Set SLIPWAY_PUBLIC_URL, such as https://slipway.example.org.")
def public_address() -> Iterator[Line]:
    address = urlsplit(settings.SLIPWAY_PUBLIC_URL)
    fix = "Set SLIPWAY_PUBLIC_URL to https:// and a host of SLIPWAY_ALLOWED_HOSTS."
    if not address.hostname:
        yield report_failed("Public address", "not set: links in messages lead nowhere", fix)
    elif address.scheme != "https":
        yield report_failed("Public address", f"{settings.SLIPWAY_PUBLIC_URL} is not https://", fix)
    elif address.hostname not in settings.ALLOWED_HOSTS:
        detail = f"{address.hostname} is not in SLIPWAY_ALLOWED_HOSTS: its links answer 400"
        yield report_failed("Public address", detail, fix)
    else:
        yield ok("Public address", settings.SLIPWAY_PUBLIC_URL)


@check(_AREA, "Form origins", fix="Set SLIPWAY_TRUSTED_ORIGINS to the origin of the portal.")
def form_origins() -> Iterator[Line]:
    origin = settings.SLIPWAY_PUBLIC_URL
    if origin and origin not in settings.CSRF_TRUSTED_ORIGINS:
        yield report_failed(
            "Form origins",
            f"{origin} is not in SLIPWAY_TRUSTED_ORIGINS: forms that come through the proxy are refused",
            f"Add {origin} to SLIPWAY_TRUSTED_ORIGINS.",
        )


@check(_AREA, "Proxies", fix="Set SLIPWAY_TRUSTED_PROXIES to the networks of your load balancer.")
def proxies() -> Iterator[Line]:
    if settings.SLIPWAY_HTTPS and not settings.SLIPWAY_TRUSTED_PROXIES:
        yield note(
            "Proxies",
            "no proxy is trusted, so everyone behind it counts as one address in sign-in limits",
            "Set SLIPWAY_TRUSTED_PROXIES to the networks of your load balancer.",
        )


@check(_AREA, "Second factor", fix="Set SLIPWAY_REQUIRE_SECOND_FACTOR=1.")
def second_factor() -> Iterator[Line]:
    if not settings.SLIPWAY_REQUIRE_SECOND_FACTOR:
        yield note(
            "Second factor",
            "leads and platform admins with a password of the portal need no second factor",
            "Set SLIPWAY_REQUIRE_SECOND_FACTOR=1.",
        )


@check(_AREA, "Static files", fix="Run `manage.py collectstatic` where the image is built.")
def static_files() -> Iterator[Line]:
    fix = "Run `manage.py collectstatic` in the image, and give all roles the same image."
    if settings.WHITENOISE_USE_FINDERS:
        yield note(
            "Static files", "read from the source, because this is the demo or debugging", fix
        )
        return
    try:
        address = staticfiles_storage.url(_PAGE_STYLE)
    except ValueError as error:
        yield report_failed("Static files", f"pages cannot be rendered: {error}", fix)
        return
    name = address.removeprefix(settings.STATIC_URL)
    if (Path(settings.STATIC_ROOT) / name).is_file():
        yield ok("Static files", f"built, as {name}")
    else:
        yield report_failed("Static files", f"{settings.STATIC_ROOT} lacks {name}", fix)


def _is_loopback(host: str) -> bool:
    if host in ("localhost", "testserver"):
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
