"""Inputs, outputs and configuration on the page of a version, paginated or truncated."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from deployments.models import ModelVersion
from deployments.registry.domain import signatures, snippets, triton_config
from deployments.registry.domain.load_tests import results
from deployments.registry.domain.load_tests.results import LoadTest
from deployments.registry.domain.signatures import Signature
from deployments.registry.domain.snippets import Snippet
from deployments.registry.selectors import versions
from portal.accounts.models import User
from portal.ui.access import people_only

TENSORS_PER_PAGE: Final = 100
MOST_LINES: Final = 200
# Longer snippets would be unreadable.
MOST_TENSORS_IN_A_CALL: Final = 20


@dataclass(frozen=True, slots=True)
class TruncatedText:
    """The first lines, and the number of hidden ones."""

    text: str
    hidden_lines: int


def truncate(text: str) -> TruncatedText:
    lines = text.splitlines(keepends=True)
    return TruncatedText("".join(lines[:MOST_LINES]), max(len(lines) - MOST_LINES, 0))


def table(request: HttpRequest, signature: Signature, load_test: LoadTest | None) -> dict[str, Any]:
    """Return a page of inputs followed by outputs, and what the load test got where it differs. The page number
    is in the URL.
    """
    differences = results.compare_outputs(load_test, signature) if load_test else ()
    answered = {difference.name: difference.answered for difference in differences}
    rows = list(
        chain(
            (("input", tensor) for tensor in signature.inputs),
            (("output", tensor) for tensor in signature.outputs),
        )
    )
    page = Paginator(rows, TENSORS_PER_PAGE).get_page(request.GET.get("tensors"))
    return {
        "tensors": [
            (
                kind,
                tensor,
                triton_config.serving_dims(tensor, is_batched=signature.is_batched),
                answered.get(tensor.name, "") if kind == "output" else "",
            )
            for kind, tensor in page
        ],
        "tensor_page": page,
    }


def calls(url: str, model: str, signature: Signature, *, has_grpc: bool) -> dict[str, Any]:
    if not signature.inputs:
        return {"snippets": [], "hidden_in_calls": 0}
    shown = signatures.truncate(signature, MOST_TENSORS_IN_A_CALL)
    hidden = len(signature.inputs) - len(shown.inputs)
    rendered: list[Snippet] = snippets.render(
        url=url, model=model, signature=shown, has_grpc=has_grpc
    )
    return {"snippets": rendered, "hidden_in_calls": hidden}


@require_GET
@people_only
def config_file(
    request: HttpRequest, user: User, team: str, name: str, number: int
) -> HttpResponse:
    """Download the complete config.pbtxt."""
    version: ModelVersion = versions.get_version_by_number(
        actor=user, team_slug=team, name=name, number=number
    )
    response = HttpResponse(version.config_pbtxt, content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}-{number}-config.pbtxt"'
    return response
