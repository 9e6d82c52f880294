"""What the portal's processes log, and which loggers would log secrets."""

from __future__ import annotations

from typing import Any, Final

LOGGING: Final[dict[str, Any]] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "formatter": "line"},
        "nowhere": {"class": "logging.NullHandler"},
    },
    # Apprise names addresses of channels, which are secrets, in what it logs.
    "loggers": {
        "apprise": {"handlers": ["nowhere"], "propagate": False},
        "urllib3": {"level": "INFO"},
        # It logs whole addresses, and the query of a pre-signed one is a credential.
        "httpx": {"level": "WARNING"},
        "httpcore": {"level": "WARNING"},
    },
    "root": {"handlers": ["stderr"], "level": "INFO"},
}
