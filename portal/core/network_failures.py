"""Describe a failed request in the field's words, never in those of a client library.

The texts of libraries name classes, addresses in memory and retries; they are in the log, not in messages.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from typing import Final

# By the name of the class, in any library; the first that one of the chained errors has.
_BY_NAME: Final[tuple[tuple[str, str], ...]] = (
    ("NameResolutionError", "its name cannot be resolved"),
    ("ProxyError", "the proxy does not connect to it"),
    ("ProxyConnectionError", "the proxy does not connect to it"),
    ("ConnectTimeout", "no connection in time"),
    ("ConnectTimeoutError", "no connection in time"),
    ("ReadTimeout", "no answer in time"),
    ("ReadTimeoutError", "no answer in time"),
    ("WriteTimeout", "sending the request timed out"),
    ("PoolTimeout", "too many requests wait for it"),
    ("NoCredentialsError", "the portal has no credentials for it"),
    ("PartialCredentialsError", "the portal's credentials for it are incomplete"),
    ("TokenRetrievalError", "the portal's credentials for it cannot be renewed"),
    ("CredentialRetrievalError", "the portal's credentials for it cannot be read"),
    ("SSOTokenLoadError", "the portal's credentials for it cannot be read"),
    ("NoRegionError", "no region is set"),
    ("RemoteProtocolError", "the connection was closed"),
    ("ProtocolError", "the connection was closed"),
    ("HangupException", "the connection was closed"),
    ("IncompleteRead", "the answer was cut off"),
    ("DecodeError", "the answer cannot be read"),
    ("DecodingError", "the answer cannot be read"),
    ("TooManyRedirects", "it redirects too often"),
    ("NewConnectionError", "no connection"),
    ("ConnectError", "no connection"),
    ("EndpointConnectionError", "no connection"),
    ("ConnectionError", "no connection"),
    ("ConfigException", "it is not valid"),
    ("YAMLError", "it is not YAML"),
    ("KeyError", "the answer is not complete"),
)
_FALLBACK: Final = "the request failed on the way"


def describe(error: BaseException) -> str:
    """Return a phrase such as "the connection was refused"."""
    chain = list(_chain(error))
    for cause in chain:
        if phrase := _describe_system(cause):
            return phrase
    for name, phrase in _BY_NAME:
        if any(name in (kind.__name__ for kind in type(cause).__mro__) for cause in chain):
            return phrase
    for cause in chain:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror.lower()
    return _FALLBACK


def _describe_aws(error: BaseException) -> str:
    """Return the message and code that AWS answered. Empty for another error."""
    response = getattr(error, "response", None)
    answer = response.get("Error") if isinstance(response, dict) else None
    if not isinstance(answer, dict):
        return ""
    code, message = str(answer.get("Code", "")), str(answer.get("Message", ""))
    return f"{message} ({code})" if code and message else message or code


_SYSTEM: Final[tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], str], ...]] = (
    (ssl.SSLError, "the TLS handshake failed"),
    (socket.gaierror, "its name cannot be resolved"),
    (ConnectionRefusedError, "the connection was refused"),
    (
        (ConnectionResetError, BrokenPipeError, ConnectionAbortedError),
        "the connection was closed",
    ),
    (TimeoutError, "no answer in time"),
)


def _describe_system(error: BaseException) -> str:
    if phrase := _describe_aws(error):
        return phrase
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    return next((phrase for kinds, phrase in _SYSTEM if isinstance(error, kinds)), "")


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Return the error and what caused it, however the library keeps that."""
    seen: set[int] = set()
    waiting: list[object] = [error]
    while waiting:
        item = waiting.pop(0)
        if not isinstance(item, BaseException) or id(item) in seen:
            continue
        seen.add(id(item))
        yield item
        waiting += [
            item.__cause__,
            getattr(item, "reason", None),
            getattr(item, "original_error", None),
            *item.args,
            item.__context__,
        ]
