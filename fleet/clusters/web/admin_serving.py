"""Admin page of a cluster's serving policy: images, access to models, limits of pods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from django import forms
from django.contrib import messages
from django.forms import BoundField
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from fleet.clusters.domain import serving_policy as serving_rules
from fleet.clusters.domain.serving_policy import ServingPolicy
from fleet.clusters.selectors import clusters, default_serving_policy
from fleet.clusters.services import serving_policy as cluster_serving_policy
from portal.accounts import policy
from portal.accounts.models import User
from portal.core.definitions import FieldDefinition, fields_of
from portal.core.errors import Invalid
from portal.ui.access import people_only
from portal.ui.definition_fields import form_field
from portal.ui.form_errors import add_to

# The cards of the page: groups of the definition, each with its note.
_CARDS: Final = {
    "Images": "",
    "Allowed for teams": "Everything else is rejected",
    "Pod restrictions": "",
    "Model access for pods": "Fill in one of the two",
    "Cluster services": "",
}
_LONGEST_LIST: Final = 20_000


@dataclass(frozen=True, slots=True)
class Card:
    title: str
    note: str
    fields: Sequence[BoundField]


class ServingForm(forms.Form):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, definition in fields_of(ServingPolicy).items():
            self.fields[name] = _field(definition)

    @property
    def cards(self) -> list[Card]:
        definitions = fields_of(ServingPolicy)
        return [
            Card(
                title,
                note,
                [self[n] for n in definitions if definitions[n].extra["group"] == title],
            )
            for title, note in _CARDS.items()
        ]

    def policy(self) -> ServingPolicy:
        texts = {name: text.strip() for name, text in self.cleaned_data.items()}
        lists = {name: serving_rules.split(texts[name]) for name in serving_rules.LISTS}
        return ServingPolicy(**{**texts, **lists})


def _field(definition: FieldDefinition) -> forms.Field:
    if not definition.is_list:
        return form_field(definition)
    return forms.CharField(
        label=definition.label,
        required=False,
        max_length=_LONGEST_LIST,
        help_text=f"One per line. {definition.help}".strip(),
        widget=forms.Textarea(attrs={"rows": "4", "spellcheck": "false"}),
    )


@require_http_methods(["GET", "POST"])
@people_only
def edit_serving(request: HttpRequest, user: User, cluster_id: int) -> HttpResponse:
    policy.require_platform_admin(user)
    info = clusters.get_cluster(cluster_id)
    form = ServingForm(request.POST or None, initial=_texts_of(info.serving))
    for name, text in _texts_of(default_serving_policy.default_policy()).items():
        form.fields[name].widget.attrs["placeholder"] = text
    if request.method == "POST" and form.is_valid() and _save(user, cluster_id, form):
        messages.success(
            request, f"Serving settings saved. They apply to new revisions on {info.name}."
        )
        return redirect("admin-cluster", cluster_id=cluster_id)
    status = 422 if form.errors else 200
    context = {"form": form, "info": info}
    return render(request, "clusters/admin_cluster_serving.html", context, status=status)


def _texts_of(serving: ServingPolicy) -> dict[str, str]:
    texts = serving.to_json()
    return {
        **texts,
        **{name: "\n".join(texts[name]) for name in serving_rules.LISTS if name in texts},
    }


def _save(user: User, cluster_id: int, form: ServingForm) -> bool:
    try:
        cluster_serving_policy.set_policy(actor=user, cluster_id=cluster_id, serving=form.policy())
    except Invalid as error:
        add_to(form, error)
        return False
    return True
