"""Tokens with which identity providers provision people by SCIM. For platform admins."""

from __future__ import annotations

from django import forms
from django.conf import settings
from django.contrib import messages
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from portal.accounts.models import ProvisionedPerson, User
from portal.accounts.scim import tokens
from portal.accounts.scim.tokens import NewScimToken
from portal.ui.access import keeps_input, people_only
from portal.ui.service_form import ServiceForm


class ProvisioningForm(ServiceForm):
    provider = forms.ChoiceField()

    def __init__(self, data: object = None) -> None:
        super().__init__(data)  # type: ignore[arg-type]  # what a request posts
        self.fields["provider"] = forms.ChoiceField(
            choices=[(row.name, row.label) for row in settings.SLIPWAY_OIDC],
            help_text="A provider that people sign in with.",
        )


@require_http_methods(["GET", "POST"])
@never_cache
@people_only
@keeps_input
def provisioning(request: HttpRequest, user: User) -> HttpResponse:
    rows = tokens.list_tokens(actor=user)
    form = ProvisioningForm(request.POST or None)
    made: NewScimToken | None = None
    if request.method == "POST":
        made = form.run(
            lambda: tokens.create(actor=user, provider_name=form.cleaned_data["provider"])
        )
    counted = ProvisionedPerson.objects.filter(deleted_at=None).values("provider")
    context = {
        "tokens": rows.all(),
        "form": form,
        "made": made,
        "base": request.build_absolute_uri(reverse("scim-users")).removesuffix("/Users"),
        "people": counted.annotate(
            count=Count("pk", distinct=True),
            group_count=Count("groups", distinct=True),
            off=_deactivated(),
        ).order_by("provider"),
    }
    return render(request, "dashboard/provisioning.html", context, status=form.status)


@require_POST
@people_only
def revoke(request: HttpRequest, user: User, token_id: int) -> HttpResponse:
    tokens.revoke(actor=user, token_id=token_id)
    messages.success(request, "Revoked. Requests with that token are now refused.")
    return redirect("admin-provisioning")


def _deactivated() -> Count:
    return Count("pk", filter=Q(user__is_active=False), distinct=True)
