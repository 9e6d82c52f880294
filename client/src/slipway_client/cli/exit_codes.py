"""Exit codes, for scripts. Documented in client/README.md and in `slipway --help`."""

from __future__ import annotations

from slipway_client import errors

OK = 0
FAILED = 1
USAGE = 2
REFUSED = 3
NOT_LOGGED_IN = 4
UNREACHABLE = 5
TIMED_OUT = 6
INTERRUPTED = 130

MEANINGS = {
    OK: "done",
    FAILED: "it ended in another way: a version failed, a change was rejected, a rollout aborted",
    USAGE: "wrong arguments, or something refused before it was sent",
    REFUSED: "the portal refused; the message names the field and the fix",
    NOT_LOGGED_IN: "no address or token, or the token was refused",
    UNREACHABLE: "the portal or the model's server did not answer, also after retries",
    TIMED_OUT: "it is still in progress; wait again",
    INTERRUPTED: "Ctrl-C; an upload can be resumed",
}

_OF_ERRORS: tuple[tuple[type[errors.SlipwayError], int], ...] = (
    (errors.TokenRefused, NOT_LOGGED_IN),
    (errors.NotLoggedIn, NOT_LOGGED_IN),
    (errors.ServerError, UNREACHABLE),
    (errors.TooManyRequests, UNREACHABLE),
    (errors.ConnectionFailed, UNREACHABLE),
    (errors.UnexpectedAnswer, UNREACHABLE),
    (errors.ApiError, REFUSED),
    (errors.WaitTimedOut, TIMED_OUT),
    (errors.InvalidInput, USAGE),
)


def get_exit_code(error: errors.SlipwayError) -> int:
    return next((code for kind, code in _OF_ERRORS if isinstance(error, kind)), FAILED)
