"""Parse JSON bodies within bounds; errors name the location of the value."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import IO, Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from rest_framework.parsers import JSONParser

from portal.core import documents
from portal.core.documents import UnreadableDocument
from portal.core.errors import DomainError, Invalid


class Malformed(DomainError):
    code = "parse_error"
    status = HTTPStatus.BAD_REQUEST
    title = "Bad request"


class BoundedJSONParser(JSONParser):
    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        max_bytes = settings.DATA_UPLOAD_MAX_MEMORY_SIZE or documents.DEFAULT.most_bytes
        content = stream.read(max_bytes + 1)
        if len(content) > max_bytes:
            raise RequestDataTooBig
        try:
            return documents.read_json(content)
        except UnreadableDocument as error:
            raise _problem_of(error) from error


def _problem_of(error: UnreadableDocument) -> DomainError:
    place = error.place or "body"
    kind = Malformed if error.is_syntax else Invalid
    return kind(f"Check {place}: {error.message}", fields={place: error.message})
