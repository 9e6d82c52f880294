"""Forms of attestations, trusted signers and signing rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, cast

from django import forms
from django.core.files.uploadedfile import UploadedFile

from deployments.attestations.domain.signers import SignerKind
from deployments.attestations.domain.trust_roots import MOST_BYTES
from deployments.attestations.services import attestations
from deployments.attestations.services.trust import SignerDraft, SigningRuleDraft
from deployments.models import TrustedSigner, TrustRoot
from deployments.states import Environment
from portal.accounts.models import Team
from portal.ui.service_form import ServiceForm

_ALL = ("", "All teams")


class AttestationForm(ServiceForm):
    renamed: ClassVar[Mapping[str, str]] = {"body": "file", "filename": "file"}

    file = forms.FileField(
        label="Signature or provenance",
        max_length=200,
        help_text="A Sigstore bundle (model_signing, cosign --bundle) or a DSSE envelope.",
    )

    def clean_file(self) -> UploadedFile[bytes]:
        file = cast("UploadedFile[bytes]", self.cleaned_data["file"])
        if (file.size or 0) > attestations.MOST_BYTES:
            raise forms.ValidationError(f"At most {attestations.MOST_BYTES:,} bytes.")
        try:
            self.body = file.read().decode()
        except UnicodeDecodeError as error:
            raise forms.ValidationError("This is neither a bundle nor an envelope.") from error
        return file

    def draft(self) -> dict[str, str]:
        return {"filename": self.cleaned_data["file"].name, "body": self.body}


class SignerForm(ServiceForm):
    name = forms.CharField(max_length=80, help_text="For example “Training pipeline”.")
    team = forms.ChoiceField(required=False, label="Trusted for")
    kind = forms.ChoiceField(
        choices=[
            (SignerKind.KEY.value, "A public key"),
            (SignerKind.CERTIFICATE.value, "Certificates of an authority"),
        ],
        label="Signs with",
    )
    pem = forms.CharField(
        label="PEM",
        help_text="The public key, or the authority's root certificates.",
        widget=forms.Textarea(attrs={"rows": 5, "spellcheck": "false", "class": "mono"}),
    )
    identity = forms.CharField(
        required=False,
        max_length=300,
        help_text="For certificates: the e-mail address or URI that they must name.",
    )

    def __init__(self, *args: Any, teams: Iterable[Team], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # The form of a rule on the same page has fields of the same names.
        self.auto_id = "id_signer_%s"
        cast("forms.ChoiceField", self.fields["team"]).choices = _choices(teams)

    def draft(self) -> SignerDraft:
        data = self.cleaned_data
        return SignerDraft(
            name=data["name"],
            team=data["team"],
            kind=SignerKind(data["kind"]),
            pem=data["pem"],
            identity=data["identity"],
        )


class IdentityForm(ServiceForm):
    """An identity of keyless signatures."""

    name = forms.CharField(max_length=80, help_text="For example “Training workflow”.")
    team = forms.ChoiceField(required=False, label="Trusted for")
    trust_root = forms.ChoiceField(label="Trust root")
    issuer = forms.CharField(
        max_length=300, help_text="For example https://token.actions.githubusercontent.com."
    )
    identity = forms.CharField(
        max_length=300,
        label="Subject",
        help_text="Compared exactly: an e-mail address, or the URI of a workflow with its ref.",
    )

    def __init__(
        self, *args: Any, teams: Iterable[Team], roots: Iterable[TrustRoot], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.auto_id = "id_identity_%s"
        cast("forms.ChoiceField", self.fields["team"]).choices = _choices(teams)
        names = [(row.name, row.name) for row in roots]
        cast("forms.ChoiceField", self.fields["trust_root"]).choices = names

    def draft(self) -> SignerDraft:
        return SignerDraft(kind=SignerKind.KEYLESS, **self.cleaned_data)


class TrustRootForm(ServiceForm):
    """A trust root as a file or as text, one of the two. `is_new` adds its name."""

    name = forms.CharField(max_length=80, help_text="For example “Sigstore public good”.")
    file = forms.FileField(required=False, label="trusted_root.json", max_length=200)
    document = forms.CharField(
        required=False,
        label="Or its text",
        strip=False,
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false", "class": "mono"}),
    )

    def __init__(self, *args: Any, is_new: bool = True, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.auto_id = "id_root_%s"
        if not is_new:
            del self.fields["name"]

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        file, text = data.get("file"), data.get("document")
        if file and (file.size or 0) > MOST_BYTES:
            raise forms.ValidationError({"file": f"At most {MOST_BYTES:,} bytes."})
        if bool(file) == bool(text) and "file" not in self.errors:
            raise forms.ValidationError({"file": "Choose the file or paste its text."})
        if file:
            try:
                data["document"] = file.read().decode()
            except UnicodeDecodeError as error:
                raise forms.ValidationError({"file": "The file is not text."}) from error
        return data

    def draft(self) -> dict[str, str]:
        return {n: self.cleaned_data[n] for n in ("name", "document") if n in self.cleaned_data}


class SigningRuleForm(ServiceForm):
    name = forms.CharField(
        max_length=80, help_text="Shown where it refuses, for example “Production is signed”."
    )
    team = forms.ChoiceField(required=False)
    environments = forms.MultipleChoiceField(
        choices=[(e.value, e.value) for e in Environment],
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="Select none for all.",
    )
    signers = forms.MultipleChoiceField(
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="Select none for any trusted signer.",
    )
    needs_provenance = forms.BooleanField(required=False, label="Provenance too")
    builders = forms.CharField(
        required=False,
        max_length=3000,
        help_text="Comma-separated patterns, for example https://github.com/acme/*. Leave empty for any.",
    )

    def __init__(
        self, *args: Any, teams: Iterable[Team], signers: Iterable[TrustedSigner], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        cast("forms.ChoiceField", self.fields["team"]).choices = _choices(teams)
        names = [(row.name, row.name) for row in signers]
        cast("forms.MultipleChoiceField", self.fields["signers"]).choices = names

    def draft(self) -> SigningRuleDraft:
        data = self.cleaned_data
        patterns = (pattern.strip() for pattern in data["builders"].split(","))
        return SigningRuleDraft(
            name=data["name"],
            team=data["team"],
            environments=tuple(data["environments"]),
            signers=tuple(data["signers"]),
            needs_provenance=data["needs_provenance"],
            builders=tuple(pattern for pattern in patterns if pattern),
        )


def _choices(teams: Iterable[Team]) -> list[tuple[str, str]]:
    return [_ALL, *((team.slug, team.name) for team in teams)]
