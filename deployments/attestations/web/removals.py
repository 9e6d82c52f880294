"""Remove a signer or a trust root: first a page that explains the consequences, then the removal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from deployments.attestations.selectors import trust_roots
from deployments.models import ModelVersion
from portal.accounts.models import User
from portal.ui.admin_pages import AdminPage

PAGE: Final = AdminPage(
    title="Signing",
    explanation="Who is trusted to sign models, and where a signature is required. Running deployments are not affected.",
    tab="signing",
    url="admin-signing",
    template="attestations/admin_signing.html",
)
# Of the message; the page before shows all.
_MOST_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class Removal:
    """A removal to confirm. `signer_ids` are the signers whose signatures no longer count; `identities` are their
    names, for a trust root.
    """

    kind: str
    name: str
    signer_ids: tuple[int, ...]
    url: str
    identities: tuple[str, ...] = ()


def answer(
    request: HttpRequest, user: User, removal: Removal, remove: Callable[[], None]
) -> HttpResponse:
    versions = trust_roots.versions_only_signed_by(removal.signer_ids, actor=user)
    if request.method == "GET":
        context = {
            "removal": removal,
            "versions": versions,
            "total": versions.count(),
            "admin_page": PAGE,
        }
        return render(request, "attestations/remove_trust.html", context)
    message = f"{removal.name} is removed. {_consequence(versions)}"
    return PAGE.answer(request, remove, message)


def _consequence(versions: QuerySet[ModelVersion]) -> str:
    total = versions.count()
    if not total:
        return "No version loses its only trusted signature."
    names = ", ".join(f"{row.team_slug}/{row.label}" for row in versions[:_MOST_NAMED])
    more = total - _MOST_NAMED
    rest = f" and {more} more" if more > 0 else ""
    return f"Without a trusted signature now: {names}{rest}."
