"""The domain's Rejected as the Invalid that pages and the API show."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from portal.core.definitions import Rejected
from portal.core.errors import Invalid


@contextmanager
def as_invalid(prefix: str = "") -> Iterator[None]:
    """Raise Invalid for what is rejected inside, with the prefix before the name of each field."""
    try:
        yield
    except Rejected as error:
        fields = {f"{prefix}{name}": message for name, message in error.fields.items()}
        raise Invalid(error.message, fields=fields) from error
