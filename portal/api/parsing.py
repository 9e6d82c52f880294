"""JSON bodies, with what the framework's parser lets through to a server error refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import IO, Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser


class BoundedJSONParser(JSONParser):
    """The size is bounded by Django (DATA_UPLOAD_MAX_MEMORY_SIZE), the depth by Python's stack."""

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        try:
            parsed = super().parse(stream, media_type, parser_context)
            # An escaped lone surrogate is JSON, but no text: it can be neither stored nor answered.
            json.dumps(parsed, ensure_ascii=False).encode()
        except RecursionError as error:
            raise ParseError("The JSON is nested too deeply.") from error
        except UnicodeEncodeError as error:
            raise ParseError("The JSON holds half a character: a lone surrogate.") from error
        return parsed
