"""Forms of API tokens and service accounts. They parse input; the services validate it."""

from __future__ import annotations

from typing import Any, Final, TypedDict

from django import forms
from django.conf import settings

from portal.accounts import policy, tokens
from portal.accounts.models import User
from portal.accounts.scopes import DESCRIPTIONS, OF_SERVICE_ACCOUNTS, Scope

# What the column holds; the service knows the platform's limit.
_MOST_REQUESTS: Final = 2**31 - 1


class TokenRequest(TypedDict):
    name: str
    scopes: list[str]
    days: int
    requests_per_minute: int | None


class NewPersonalToken(TokenRequest):
    team_slug: str


class Rotation(TypedDict):
    token_id: int
    overlap_hours: int


OVERLAP_CHOICES: Final = (
    (0, "End the old token now"),
    (1, "Keep the old token 1 hour"),
    (24, "Keep the old token 1 day"),
    (168, "Keep the old token 7 days"),
)


class _LifetimeForm(forms.Form):
    name = forms.CharField(max_length=80)
    scopes = forms.MultipleChoiceField(required=False, widget=forms.CheckboxSelectMultiple)
    days = forms.TypedChoiceField(label="Expires after", coerce=int)
    requests_per_minute = forms.IntegerField(
        label="Requests a minute", required=False, min_value=1, max_value=_MOST_REQUESTS
    )

    def __init__(self, scopes: tuple[Scope, ...], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choosable = [scope for scope in scopes if scope != Scope.READ]
        self.fields["scopes"].choices = [(scope.value, DESCRIPTIONS[scope]) for scope in choosable]  # type: ignore[attr-defined]  # a choice field
        self.fields["scopes"].help_text = "Reading is always included."
        self.fields["days"].choices = [(days, _days(days)) for days in tokens.lifetimes()]  # type: ignore[attr-defined]  # a choice field
        self.fields["days"].initial = tokens.default_days()
        most = settings.SLIPWAY_API_REQUESTS_PER_MINUTE
        self.fields[
            "requests_per_minute"
        ].help_text = f"Leave empty for {most:,}, the platform's limit."

    def select_scopes(self, text: str) -> None:
        """Tick the scopes of a comma-separated list; others are ignored."""
        known = [value for value, _ in self.fields["scopes"].choices]  # type: ignore[attr-defined]  # a choice field
        given = [name for name in text.split(",") if name in known]
        self.fields["scopes"].initial = given
        if Scope.DECIDE in given:
            self.fields["days"].initial = tokens.DECIDE_DAYS


class TokenForm(_LifetimeForm):
    team = forms.ChoiceField(
        required=False, help_text="With a team, the token sees nothing of other teams."
    )
    field_order = ("name", "scopes", "team", "days", "requests_per_minute")

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(tuple(Scope), *args, **kwargs)
        slugs = [(team.slug, team.slug) for team in policy.visible_teams(user)]
        self.fields["team"].choices = [("", "All my teams"), *slugs]  # type: ignore[attr-defined]  # a choice field
        self.fields[
            "name"
        ].help_text = "Where the token is used, so that you know what stops when you revoke it."
        self.fields["days"].help_text = "A token with the scope decide expires after 1 day."

    def values(self) -> NewPersonalToken:
        data = self.cleaned_data
        return NewPersonalToken(
            name=data["name"],
            scopes=data["scopes"],
            days=data["days"],
            requests_per_minute=data["requests_per_minute"],
            team_slug=data["team"],
        )


class ServiceAccountForm(_LifetimeForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # The page has other forms with a name.
        super().__init__(OF_SERVICE_ACCOUNTS, *args, **{"auto_id": "service_%s", **kwargs})
        self.fields[
            "name"
        ].help_text = "Name of what uses it, for example ci. Lowercase letters, digits and '-'."

    def values(self) -> TokenRequest:
        data = self.cleaned_data
        return TokenRequest(
            name=data["name"],
            scopes=data["scopes"],
            days=data["days"],
            requests_per_minute=data["requests_per_minute"],
        )


class RotationForm(forms.Form):
    token_id = forms.IntegerField(min_value=1)
    overlap_hours = forms.TypedChoiceField(choices=OVERLAP_CHOICES, coerce=int)

    def values(self) -> Rotation:
        data = self.cleaned_data
        return Rotation(token_id=data["token_id"], overlap_hours=data["overlap_hours"])


def _days(count: int) -> str:
    return "1 day" if count == 1 else f"{count} days"
