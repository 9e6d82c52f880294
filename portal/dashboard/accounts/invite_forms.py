"""Forms that invite a person. They parse input; the service validates it."""

from __future__ import annotations

from django import forms

from portal.accounts import roles
from portal.accounts.local import links
from portal.accounts.models import Role, User
from portal.dashboard.admin_forms import ROLE_CHOICES


class InviteForm(forms.Form):
    name = forms.CharField(max_length=150, widget=forms.TextInput(attrs={"autocomplete": "off"}))
    email = forms.EmailField(
        label="E-mail address",
        max_length=254,
        widget=forms.EmailInput(attrs={"autocomplete": "off"}),
    )
    role = forms.ChoiceField(choices=ROLE_CHOICES, initial=Role.MEMBER)

    def __init__(self, data: object = None) -> None:
        # The page has another form with a role.
        super().__init__(data, auto_id="invite_%s")  # type: ignore[arg-type]  # what a request posts
        if links.can_mail():
            self.fields["email"].help_text = "The link is sent there, and to nobody else."
        else:
            self.fields[
                "email"
            ].help_text = (
                "This portal sends no e-mail. The link is shown to you once: send it yourself."
            )


class InviteToTeamForm(InviteForm):
    """An invitation on the page of all people, where the team is a choice."""

    field_order = ("name", "email", "team", "role")

    def __init__(self, user: User, data: object = None) -> None:
        super().__init__(data)
        slugs = roles.led_teams(user).order_by("slug").values_list("slug", flat=True)
        self.fields["team"] = forms.ChoiceField(choices=[(slug, slug) for slug in slugs])
