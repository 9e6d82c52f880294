"""Cursor pagination: stable under inserts and cheap at any depth."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from dataclasses import dataclass
from typing import Any, Final
from urllib import parse

from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.request import Request

from portal.api.parsing import Malformed

# The largest possible primary key.
_MAX_ID = 2**63 - 1
_MAX_LENGTH = 1_000
# More than any list has.
MOST_ROWS: Final = 1_000_000


class CursorPage(CursorPagination):
    page_size = 50
    max_page_size = 200
    page_size_query_param = "limit"
    ordering = "-id"

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        """Document the parameters of a page with their bounds."""
        parameters: list[dict[str, Any]] = super().get_schema_operation_parameters(view)
        for parameter in parameters:
            if parameter["schema"]["type"] == "integer":
                parameter["schema"] |= {"minimum": 1, "maximum": self.max_page_size}
        return parameters

    def decode_cursor(self, request: Request) -> Cursor | None:
        """Reject cursors that this API did not issue: the database would fail on them, or return a
        page that looks complete.
        """
        encoded = request.query_params.get(self.cursor_query_param)
        if encoded is None:
            return None
        return read_cursor(encoded, most_offset=self.offset_cutoff or 0, is_by_id=self._is_by_id())

    def _is_by_id(self) -> bool:
        fields = (self.ordering,) if isinstance(self.ordering, str) else tuple(self.ordering)
        return fields[0].lstrip("-") in ("id", "pk")


_CURSOR: Final = CursorPage.cursor_query_param
_LIMIT: Final = str(CursorPage.page_size_query_param)


@dataclass(frozen=True, slots=True)
class OffsetPage:
    """A page of a list that is computed as a whole, for example a ranking."""

    offset: int
    limit: int
    address: str

    def links(self, count: int) -> dict[str, str | None]:
        """Return `next` and `previous` of a list with `count` rows. Raises Malformed if it ends before this page."""
        if self.offset and self.offset >= count:
            raise bad_cursor()
        after, before = self.offset + self.limit, max(0, self.offset - self.limit)
        return {
            "next": self._address_at(after) if after < count else None,
            "previous": self._address_at(before) if self.offset else None,
        }

    def _address_at(self, offset: int) -> str:
        parts = parse.urlsplit(self.address)
        query = parse.parse_qs(parts.query, keep_blank_values=True)
        query.pop(_CURSOR, None)
        if offset:
            query[_CURSOR] = [b64encode(f"o={offset}".encode()).decode()]
        sorted_query = parse.urlencode(sorted(query.items()), doseq=True)
        return parts._replace(query=sorted_query).geturl()


def read_offset(request: Request, *, most: int) -> OffsetPage:
    """Raises Malformed for a cursor that this API did not issue; a limit is at most `most`."""
    encoded = request.query_params.get(_CURSOR)
    offset = 0
    if encoded is not None:
        cursor = read_cursor(encoded, most_offset=MOST_ROWS, is_by_id=False)
        if cursor.position is not None or cursor.reverse:
            raise bad_cursor()
        offset = cursor.offset
    text = request.query_params.get(_LIMIT, "")
    is_number = text.isascii() and text.isdecimal() and len(text) < 10
    limit = min(int(text) or most, most) if is_number else most
    return OffsetPage(offset, limit, request.build_absolute_uri())


def read_cursor(encoded: str, *, most_offset: int, is_by_id: bool) -> Cursor:
    """Raises Malformed."""
    try:
        return _cursor_of(encoded, most_offset=most_offset, is_by_id=is_by_id)
    except ValueError as error:
        raise bad_cursor() from error


def bad_cursor() -> Malformed:
    return Malformed(
        "The cursor is not valid for this list. Use next or previous of a page, or omit it "
        "for the first page.",
        fields={CursorPage.cursor_query_param: "not valid for this list"},
    )


def _cursor_of(encoded: str, *, most_offset: int, is_by_id: bool) -> Cursor:
    """Raises ValueError."""
    if len(encoded) > _MAX_LENGTH:
        raise ValueError("too long")
    try:
        text = b64decode(encoded.encode("ascii"), validate=True).decode("ascii")
    except (binascii.Error, UnicodeError) as error:
        raise ValueError("not base64 of text") from error
    parameters = parse.parse_qs(text, keep_blank_values=True, strict_parsing=True)
    if not set(parameters) <= {"o", "r", "p"} or any(
        len(values) > 1 for values in parameters.values()
    ):
        raise ValueError("unknown parts")
    offset = _parse_id(parameters.get("o", ["0"])[0])
    position = parameters.get("p", [None])[0]
    if offset > most_offset or parameters.get("r", ["1"]) != ["1"]:
        raise ValueError("out of range")
    if "\0" in (position or ""):
        raise ValueError("NUL in a cursor")
    if is_by_id and position is not None:
        _parse_id(position)
    # The framework's stubs say a number; it passes the text on to the database.
    return Cursor(offset=offset, reverse="r" in parameters, position=position)  # type: ignore[arg-type]  # as above


def _parse_id(text: str) -> int:
    """Raises ValueError."""
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1
    if not 0 <= number <= _MAX_ID:
        raise ValueError("not an id")
    return number
