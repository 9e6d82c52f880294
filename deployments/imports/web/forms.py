"""The form of an import."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from django import forms

from deployments.imports.domain import addresses
from deployments.registry.web.forms import DECLARED_FIELDS, UploadForm


class ImportForm(UploadForm):
    address = forms.CharField(
        max_length=addresses.MAX_LENGTH,
        label="Address",
        help_text=f"{addresses.FORMS}.",
        widget=forms.TextInput(
            attrs={"spellcheck": "false", "autocapitalize": "none", "autocomplete": "off"}
        ),
    )

    server = forms.ChoiceField(
        required=False, label="MLflow server", help_text="Only for models:/name/3."
    )

    def __init__(self, *args: Any, servers: Iterable[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [("", "none"), *((name, name) for name in servers)]
        cast("forms.ChoiceField", self.fields["server"]).choices = choices

    def declares(self) -> bool:
        """Whether anything of the declaration was changed from its default."""
        return bool(
            {*self.changed_data} & {"supports_batching", "max_batch_size", *DECLARED_FIELDS}
        )

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the service that starts the import."""
        return {
            "address": self.cleaned_data["address"],
            "server": self.cleaned_data.get("server", ""),
            "metadata": self.metadata(),
            "declared": self.get_arguments() if self.declares() else {},
            "readme": self.cleaned_data["readme"],
        }
