"""The form that edits the metadata of a version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django import forms

from deployments.registry.domain.metadata.version_metadata import SIZES
from deployments.registry.web.forms import MetadataForm
from deployments.sizing.domain.declared_size import KV_CACHE, DeclaredSize


class EditMetadataForm(MetadataForm):
    """The form that edits stored metadata. Sizes that the form has no field for stay as they are."""

    renamed: ClassVar[Mapping[str, str]] = {
        **MetadataForm.renamed,
        f"metadata.{KV_CACHE}": KV_CACHE,
    }

    kv_cache_kib_per_token = forms.CharField(
        required=False,
        max_length=20,
        label="KV cache per token",
        help_text="At 16 bits. config.json does not state it. Used to size the GPU.",
        widget=forms.TextInput(attrs={"inputmode": "numeric", "data-unit": "KiB"}),
    )

    def __init__(
        self, *args: Any, stored: Mapping[str, Any], needs_kv_cache: bool, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._stored = stored
        if not needs_kv_cache:
            del self.fields[KV_CACHE]

    def metadata(self) -> dict[str, Any]:
        sizes = {key: self._stored[key] for key in SIZES if key in self._stored}
        typed = {KV_CACHE: self.cleaned_data[KV_CACHE]} if KV_CACHE in self.fields else {}
        return super().metadata() | sizes | typed

    @classmethod
    def from_stored(
        cls, data: Any, *, stored: Mapping[str, Any], readme: str, size: DeclaredSize
    ) -> EditMetadataForm:
        """Return the form with stored values. `data` is what was posted, or None. `size` is that of the
        version's weights.
        """
        initial = cls.initial_of(stored, readme) | {KV_CACHE: size.kv_kib_per_token or ""}
        needs_kv_cache = size.is_read and size.attention is None
        return cls(data, initial=initial, stored=stored, needs_kv_cache=needs_kv_cache)
