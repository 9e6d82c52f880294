"""The client of OpenID Connect providers: allauth's discovery, state, PKCE and code exchange.

What allauth does after that (accounts, e-mail addresses, pages) is not used: portal.accounts.oidc.sign_in
decides. allauth neither sends a nonce nor checks signatures of ID tokens; id_tokens does.
"""

from __future__ import annotations

import logging
import secrets
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import requests
from allauth.socialaccount.models import SocialApp
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse

from portal.accounts.oidc import id_tokens
from portal.accounts.oidc.errors import ProviderUnavailable, SignInRefused
from portal.accounts.oidc.id_tokens import BadIdToken
from portal.accounts.oidc.providers import Provider
from portal.core.errors import NotFound

logger = logging.getLogger(__name__)
_ENDPOINTS: Final = ("authorization_endpoint", "token_endpoint", "jwks_uri")
# OpenID Connect Core 3.1.2.1: sign in again, and say when in auth_time.
_AGAIN: Final = {"prompt": "login", "max_age": "0"}


@dataclass(frozen=True, slots=True)
class Answer:
    """Verified claims, and the path that the person came from. `confirms` is who was to sign in again."""

    claims: dict[str, Any]
    next_path: str
    confirms: int | None = None


def provider_named(name: str) -> Provider:
    provider = next((row for row in settings.SLIPWAY_OIDC if row.name == name), None)
    if provider is None:
        raise NotFound(f"Sign-in provider {name} is not set up.")
    return provider


def check(provider: Provider) -> None:
    """Read the discovery document and the keys. Raises ProviderUnavailable."""
    client = _Client(HttpRequest(), app=_app_of(provider))
    adapter = _discover(client, provider)
    try:
        adapter.read_json(adapter.openid_config["jwks_uri"])
    except requests.RequestException as error:
        raise _unavailable(provider, "its keys cannot be read", error) from error


def begin(
    request: HttpRequest, provider: Provider, next_path: str, *, confirms: int | None = None
) -> HttpResponse:
    """Redirect to the provider. State, nonce and the PKCE verifier stay in the session. With `confirms` the person
    has to sign in there again, whatever session they have.
    """
    nonce = secrets.token_urlsafe(24)
    client = _Client(request, app=_app_of(provider))
    # Before anything is stored: the provider may be down.
    _discover(client, provider)
    response: HttpResponse = client.redirect(
        request,
        process="login",
        next_url=next_path,
        auth_params={"nonce": nonce, **(_AGAIN if confirms is not None else {})},
        nonce=nonce,
        confirms=confirms,
    )
    return response


def finish(request: HttpRequest, provider: Provider) -> Answer:
    """Exchange the code of the callback for verified claims.

    Raises SignInRefused for everything that is not a valid answer to a sign-in that this browser began,
    and ProviderUnavailable.
    """
    client = _Client(request, app=_app_of(provider))
    try:
        state = client.unstash_redirect_state(request, request.GET.get("state", ""))
    except PermissionDenied as error:
        raise SignInRefused(
            "This sign-in has expired or was completed already, or it began in another browser.",
            code="unknown_sign_in",
        ) from error
    if "error" in request.GET or not request.GET.get("code"):
        raise _refusal_of_provider(request, provider)
    adapter = _discover(client, provider)
    tokens = _exchange(adapter, client, state)
    claims = _verified(adapter, provider, tokens, nonce=str(state.get("nonce", "")))
    if provider.reads_userinfo:
        claims = _with_userinfo(adapter, provider, tokens, claims)
    return Answer(claims, str(state.get("next") or ""), state.get("confirms"))


class _Adapter(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]  # allauth has no types
    """allauth's adapter for one provider of the settings; it looks up nothing in the database."""

    def __init__(self, request: HttpRequest, provider_id: str) -> None:
        super().__init__(request, provider_id)
        self._client = _Client(request, app=_app_of(provider_named(provider_id)))

    def get_provider(self) -> _Client:
        return self._client

    def read_json(self, url: str, **headers: str) -> dict[str, Any]:
        """Raises RequestException, also for an answer that is not an object."""
        response = requests.get(
            url, headers=headers, timeout=settings.SOCIALACCOUNT_REQUESTS_TIMEOUT
        )
        response.raise_for_status()
        answer = response.json()
        if not isinstance(answer, dict):
            raise requests.exceptions.InvalidJSONError("not an object")
        return answer


class _Client(OpenIDConnectProvider):  # type: ignore[misc]  # allauth has no types
    oauth2_adapter_class = _Adapter

    def get_oauth2_adapter(self, request: HttpRequest) -> _Adapter:
        """Return the same adapter each time, so that discovery is read once per request."""
        if not hasattr(self, "_adapter"):
            self._adapter = _Adapter(request, self.app.provider_id)
        return self._adapter


def _app_of(provider: Provider) -> SocialApp:
    return SocialApp(
        provider="openid_connect",
        provider_id=provider.name,
        name=provider.label,
        client_id=provider.client_id,
        secret=provider.client_secret,
        settings={
            "server_url": provider.issuer.rstrip("/"),
            "oauth_pkce_enabled": True,
            "scope": list(provider.scopes),
        },
    )


def _discover(client: _Client, provider: Provider) -> _Adapter:
    adapter = client.get_oauth2_adapter(client.request)
    try:
        document = adapter.openid_config
    except (requests.RequestException, ValueError, AttributeError) as error:
        raise _unavailable(provider, "its discovery document cannot be read", error) from error
    if document.get("issuer") != provider.issuer:
        raise _unavailable(provider, "its discovery document names another issuer")
    schemes = {urlsplit(provider.issuer).scheme, "https"}
    for name in _ENDPOINTS:
        if urlsplit(str(document.get(name, ""))).scheme not in schemes:
            raise _unavailable(provider, f"its discovery document has no usable {name}")
    return adapter


def _exchange(adapter: _Adapter, client: _Client, state: dict[str, Any]) -> dict[str, Any]:
    provider = provider_named(client.app.provider_id)
    request = client.request
    try:
        tokens = adapter.get_access_token_data(
            request,
            client.app,
            adapter.get_client(request, client.app),
            pkce_code_verifier=state.get("pkce_code_verifier"),
        )
    except (requests.RequestException, ValueError, KeyError, TypeError) as error:
        raise _unavailable(provider, "its token endpoint does not answer", error) from error
    except OAuth2Error as error:
        # Its text contains the answer, so it is not logged.
        logger.warning("%s refused the code of a sign-in", provider.name)
        raise SignInRefused(
            f"{provider.label} did not accept this sign-in.", code="code_refused"
        ) from error
    if not isinstance(tokens, dict):
        raise _unavailable(provider, "its token endpoint gave an invalid answer")
    return tokens


def _verified(
    adapter: _Adapter, provider: Provider, tokens: dict[str, Any], *, nonce: str
) -> dict[str, Any]:
    try:
        keys = adapter.read_json(adapter.openid_config["jwks_uri"])
    except requests.RequestException as error:
        raise _unavailable(provider, "its keys cannot be read", error) from error
    try:
        return id_tokens.check(
            str(tokens.get("id_token", "")),
            keys=keys,
            issuer=adapter.openid_config["issuer"],
            client_id=provider.client_id,
            nonce=nonce,
        )
    except BadIdToken as error:
        logger.warning("an ID token of %s was refused: %s", provider.name, error)
        raise SignInRefused(
            f"The answer of {provider.label} was not accepted: {error}.", code="bad_id_token"
        ) from error


def _with_userinfo(
    adapter: _Adapter, provider: Provider, tokens: dict[str, Any], claims: dict[str, Any]
) -> dict[str, Any]:
    """Add what the ID token lacks. The subject must be the same (Core 5.3.2)."""
    headers = {"Authorization": f"Bearer {tokens.get('access_token', '')}"}
    try:
        more = adapter.read_json(adapter.openid_config["userinfo_endpoint"], **headers)
    except (requests.RequestException, KeyError) as error:
        raise _unavailable(provider, "its userinfo endpoint does not answer", error) from error
    if more.get("sub") != claims["sub"]:
        raise SignInRefused(
            f"The answer of {provider.label} was not accepted: it is about another person.",
            code="bad_id_token",
        )
    return {**more, **claims}


def _refusal_of_provider(request: HttpRequest, provider: Provider) -> SignInRefused:
    if request.GET.get("error") == "access_denied":
        return SignInRefused(
            f"{provider.label} did not let you in, or you canceled.", code="cancelled"
        )
    return SignInRefused(f"{provider.label} reported an error.", code="provider_error")


def _unavailable(
    provider: Provider, problem: str, error: Exception | None = None
) -> ProviderUnavailable:
    logger.warning("sign-in with %s: %s (%s)", provider.name, problem, type(error).__name__)
    return ProviderUnavailable(
        f"{provider.label} cannot be used now: {problem}. Try again in a minute, or tell a platform admin."
    )
