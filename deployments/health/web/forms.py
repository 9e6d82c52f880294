"""The switch on the tab Quality."""

from __future__ import annotations

from django import forms

from portal.ui.service_form import ServiceForm


class SwitchForm(ServiceForm):
    watch = forms.ChoiceField(choices=[("on", "On"), ("off", "Off")])

    def is_on(self) -> bool:
        return str(self.cleaned_data["watch"]) == "on"
