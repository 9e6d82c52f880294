"""The logging of the portal's processes: what, in which form, and which loggers would log secrets."""

from __future__ import annotations

from typing import Any, Final

from portal import provoked_logs
from portal.env import BadEnvironment

_LINE: Final = "%(asctime)s %(levelname)s %(name)s %(message)s"
_FORMATTERS: Final[dict[str, dict[str, Any]]] = {
    "text": {"format": _LINE},
    # One object a line, with line breaks of messages escaped: nobody can forge a line.
    "json": {
        "()": "pythonjsonlogger.json.JsonFormatter",
        "fmt": _LINE,
        "rename_fields": {"asctime": "at", "levelname": "level", "name": "logger"},
    },
}


def build_logging(form: str) -> dict[str, Any]:
    """Return Python's logging configuration. Raises BadEnvironment for a form that is neither text nor json."""
    if form not in _FORMATTERS:
        raise BadEnvironment(f"SLIPWAY_LOG_FORMAT is {form!r}. Set it to text or json.")
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": _FORMATTERS[form]},
        "handlers": {
            "stderr": {"class": "logging.StreamHandler", "formatter": "line"},
            "nowhere": {"class": "logging.NullHandler"},
        },
        "filters": {
            **{name: {"()": provoked_logs.Provoked} for name in provoked_logs.LOGGERS},
            "without traceback": {"()": provoked_logs.WithoutTraceback},
        },
        # Apprise names addresses of channels, which are secrets, in what it logs.
        "loggers": {
            **{name: {"filters": [name]} for name in provoked_logs.LOGGERS},
            "django.request": {"filters": ["without traceback"]},
            "apprise": {"handlers": ["nowhere"], "propagate": False},
            "urllib3": {"level": "INFO"},
            # It logs whole addresses, and the query of a pre-signed one is a credential.
            "httpx": {"level": "WARNING"},
            "httpcore": {"level": "WARNING"},
        },
        "root": {"handlers": ["stderr"], "level": "INFO"},
    }
