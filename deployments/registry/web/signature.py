"""What a version's page shows of inputs, outputs and configuration: never more than a page of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from deployments.models import ModelVersion
from deployments.registry.domain import signatures, snippets, triton_config
from deployments.registry.domain.signatures import Signature
from deployments.registry.domain.snippets import Snippet
from deployments.registry.selectors import versions
from portal.accounts.models import User
from portal.ui.access import people_only
from portal.ui.addresses import with_query

TENSORS_PER_PAGE: Final = 100
MOST_LINES: Final = 200
# A call to copy is read by a person; the rest follows the same pattern.
MOST_TENSORS_IN_A_CALL: Final = 20


@dataclass(frozen=True, slots=True)
class CutText:
    """The first lines, and how many more there are."""

    text: str
    hidden_lines: int


def cut(text: str) -> CutText:
    lines = text.splitlines(keepends=True)
    return CutText("".join(lines[:MOST_LINES]), max(len(lines) - MOST_LINES, 0))


def table(request: HttpRequest, signature: Signature) -> dict[str, Any]:
    """One page of inputs, then outputs; the page's number is in the address."""
    rows = list(
        chain(
            (("input", tensor) for tensor in signature.inputs),
            (("output", tensor) for tensor in signature.outputs),
        )
    )
    page = Paginator(rows, TENSORS_PER_PAGE).get_page(request.GET.get("tensors"))
    return {
        "tensors": [
            (kind, tensor, triton_config.serving_dims(tensor, is_batched=signature.is_batched))
            for kind, tensor in page
        ],
        "tensor_page": page,
        "previous_tensors": _address(request, page.number - 1) if page.has_previous() else "",
        "next_tensors": _address(request, page.number + 1) if page.has_next() else "",
    }


def calls(url: str, model: str, signature: Signature) -> dict[str, Any]:
    if not signature.inputs:
        return {"snippets": [], "hidden_in_calls": 0}
    shown = signatures.first(signature, MOST_TENSORS_IN_A_CALL)
    hidden = len(signature.inputs) - len(shown.inputs)
    made: list[Snippet] = snippets.render(url=url, model=model, signature=shown)
    return {"snippets": made, "hidden_in_calls": hidden}


@require_GET
@people_only
def config_file(
    request: HttpRequest, user: User, team: str, name: str, number: int
) -> HttpResponse:
    """The whole config.pbtxt, as a file."""
    version: ModelVersion = versions.get_version_by_number(
        actor=user, team_slug=team, name=name, number=number
    )
    response = HttpResponse(version.config_pbtxt, content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}-{number}-config.pbtxt"'
    return response


def _address(request: HttpRequest, number: int) -> str:
    return f"{with_query(request, tensors=number)}#signature"
