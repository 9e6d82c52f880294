"""People: search, deactivate and reactivate, connect with a sign-in provider. For platform admins."""

from __future__ import annotations

from http import HTTPStatus

from django import forms
from django.conf import settings
from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from portal.accounts import people
from portal.accounts.local import invitations, second_factor
from portal.accounts.models import User
from portal.core.errors import DomainError
from portal.dashboard.accounts.invite_forms import InviteToTeamForm
from portal.dashboard.accounts.shown_links import ShownLink
from portal.ui.access import people_only
from portal.ui.form_errors import add_to
from portal.ui.lists import FilterForm, plain_input

_ROWS = 50


class PeopleFilter(FilterForm):
    q = forms.CharField(
        required=False, max_length=150, widget=plain_input("Name or e-mail", "Search people")
    )


class ReasonForm(forms.Form):
    reason = forms.CharField(required=False, max_length=300, help_text="Kept in the audit trail.")


class ConnectForm(forms.Form):
    provider = forms.ChoiceField()
    subject = forms.CharField(
        label="Identifier",
        max_length=255,
        strip=False,
        help_text="The identifier that the sign-in page shows the person.",
    )

    def __init__(self, data: object = None) -> None:
        super().__init__(data)  # type: ignore[arg-type]  # what a request posts
        self.fields["provider"] = forms.ChoiceField(
            choices=[(row.name, row.label) for row in settings.SLIPWAY_OIDC]
        )


@require_GET
@people_only
def people_list(request: HttpRequest, user: User) -> HttpResponse:
    return render_list(request, user)


def render_list(
    request: HttpRequest,
    user: User,
    *,
    invite: InviteToTeamForm | None = None,
    invited: ShownLink | None = None,
    status: int = HTTPStatus.OK,
) -> HttpResponse:
    """Render the list of people. A refused form keeps its input and errors."""
    chosen = PeopleFilter(request)
    rows = people.list_matching(actor=user, text=chosen.cleaned_data.get("q", ""))
    context = {
        "page": Paginator(rows, _ROWS).get_page(request.GET.get("page")),
        "filter": chosen,
        "invite": invite or InviteToTeamForm(user),
        "invited": invited,
        "invitations": invitations.list_open(actor=user),
    }
    return render(request, "dashboard/people.html", context, status=status)


@require_GET
@people_only
def person_page(request: HttpRequest, user: User, username: str) -> HttpResponse:
    return render_person(request, user, username)


@require_POST
@people_only
def deactivate(request: HttpRequest, user: User, username: str) -> HttpResponse:
    form = ReasonForm(request.POST)
    if not form.is_valid():
        return render_person(request, user, username, reason=form)
    people.deactivate(actor=user, username=username, reason=form.cleaned_data["reason"])
    messages.success(
        request,
        f"Deactivated {username}. Sessions, API tokens, delegations and open invitations have ended.",
    )
    return redirect("admin-person", username=username)


@require_POST
@people_only
def reactivate(request: HttpRequest, user: User, username: str) -> HttpResponse:
    people.reactivate(actor=user, username=username)
    messages.success(request, f"{username} can sign in again.")
    return redirect("admin-person", username=username)


@require_POST
@people_only
def connect(request: HttpRequest, user: User, username: str) -> HttpResponse:
    people.get(actor=user, username=username)
    form = ConnectForm(request.POST)
    if not form.is_valid():
        return render_person(request, user, username, connection=form)
    chosen = form.cleaned_data
    try:
        people.connect(
            actor=user,
            username=username,
            provider_name=chosen["provider"],
            subject=chosen["subject"],
        )
    except DomainError as error:
        add_to(form, error)
        return render_person(request, user, username, connection=form, status=error.status)
    messages.success(request, f"{username} can sign in with {chosen['provider']} now.")
    return redirect("admin-person", username=username)


def render_person(
    request: HttpRequest,
    user: User,
    username: str,
    *,
    reason: ReasonForm | None = None,
    connection: ConnectForm | None = None,
    link: ShownLink | None = None,
    status: int = HTTPStatus.OK,
) -> HttpResponse:
    """Render the page of a person. A refused form keeps its input and errors."""
    person = people.get(actor=user, username=username)
    context = {
        "person": person,
        "memberships": person.memberships.select_related("team").order_by("team__slug"),
        "identities": person.identities.order_by("provider"),
        "is_oneself": person.pk == user.pk,
        "reason": reason or ReasonForm(),
        "connection": connection or ConnectForm(),
        "providers": settings.SLIPWAY_OIDC,
        "link": link,
        "has_password": person.has_usable_password(),
        "has_factor": second_factor.is_on(person),
    }
    has_errors = any(form and form.errors for form in (reason, connection))
    if has_errors and status == HTTPStatus.OK:
        status = HTTPStatus.UNPROCESSABLE_ENTITY
    return render(request, "dashboard/person.html", context, status=status)
