"""Slipway from notebooks and terminals.

from slipway_client import Client

slipway = Client()  # after `slipway login`
version = slipway.push("./model", "vision/detector")
"""

from slipway_client.client import Client
from slipway_client.connection import RetryPolicy
from slipway_client.errors import (
    ApiError,
    Conflict,
    ConnectionFailed,
    Failed,
    Forbidden,
    InvalidInput,
    InvalidRequest,
    NotFound,
    NotLoggedIn,
    ServerError,
    SlipwayError,
    Stale,
    TokenRefused,
    TooManyRequests,
    UnexpectedAnswer,
    WaitTimedOut,
)

__all__ = [
    "ApiError",
    "Client",
    "Conflict",
    "ConnectionFailed",
    "Failed",
    "Forbidden",
    "InvalidInput",
    "InvalidRequest",
    "NotFound",
    "NotLoggedIn",
    "RetryPolicy",
    "ServerError",
    "SlipwayError",
    "Stale",
    "TokenRefused",
    "TooManyRequests",
    "UnexpectedAnswer",
    "WaitTimedOut",
]
