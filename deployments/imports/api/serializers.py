"""Serializers of imports."""

from __future__ import annotations

from rest_framework import serializers

from deployments.imports.domain import addresses
from deployments.imports.domain.mlflow.answers import MlflowVersion
from deployments.models import Import
from deployments.registry.api.serializers import DeclarationSerializer
from deployments.states import ImportKind, ImportState
from portal.api.base_serializer import Serializer, choice_of


class StartImportSerializer(Serializer):
    address = serializers.CharField(
        max_length=addresses.MAX_LENGTH,
        help_text=f"{addresses.FORMS}. The query of a URL is treated as a credential.",
    )
    server = serializers.CharField(
        default="",
        allow_blank=True,
        max_length=40,
        help_text="the MLflow server of models:/…; may be left out where there is only one",
    )
    metadata = serializers.DictField(
        default=dict, help_text="goes before what the source says about the model"
    )
    declared = DeclarationSerializer(required=False)
    readme = serializers.CharField(default="", allow_blank=True)


class ImportSerializer(Serializer):
    """An import of files into the version `version_id`."""

    id = serializers.IntegerField()
    version_id = serializers.IntegerField()
    version = serializers.CharField(source="version.label")
    version_state = serializers.CharField(source="version.state")
    team = serializers.CharField(source="version.model.team.slug")
    model = serializers.CharField(source="version.model.name")
    number = serializers.IntegerField(source="version.number")
    kind = choice_of(ImportKind)
    address = serializers.CharField(help_text="Address without credentials.")
    pin = serializers.CharField(help_text="the commit or version that the address named")
    server = serializers.CharField(help_text="the MLflow server; empty for other kinds")
    facts = serializers.DictField(
        help_text="Facts of the source beyond the metadata of the version. MLflow has flavor, flavors, "
        "run_id, run_name, signature, parameters, tags, aliases, left_out (files that were not copied) and "
        "without_place (metrics, parameters and tags whose names or values metadata does not take)"
    )
    state = choice_of(ImportState)
    error = serializers.CharField(help_text="why it failed or waits, with the fix")
    files_done = serializers.IntegerField()
    files_count = serializers.IntegerField(help_text="0 until the source is listed")
    copied_bytes = serializers.IntegerField()
    total_bytes = serializers.IntegerField()
    created_by = serializers.CharField(source="created_by.username")
    created_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)
    can_resume = serializers.SerializerMethodField()

    def get_can_resume(self, job: Import) -> bool:
        return job.state == ImportState.FAILED


class ImportFilterSerializer(Serializer):
    state = choice_of(ImportState, default="", allow_blank=True)


class MlflowServerSerializer(Serializer):
    """An MLflow server that the platform names."""

    name = serializers.CharField()
    address = serializers.CharField()


class MlflowModelSerializer(Serializer):
    """A registered model of an MLflow server; `newest` is the number of its newest version, empty
    if there is none.
    """

    name = serializers.CharField()
    description = serializers.CharField()
    newest = serializers.CharField(help_text="number of the newest version; empty if there is none")
    changed_at = serializers.DateTimeField(allow_null=True)


class MlflowVersionSerializer(Serializer):
    """A version of a registered model. It is imported by its `address`."""

    name = serializers.CharField()
    number = serializers.CharField()
    address = serializers.SerializerMethodField(help_text="Address to import it by.")
    run_id = serializers.CharField()
    description = serializers.CharField()
    status = serializers.CharField()
    aliases = serializers.ListField(child=serializers.CharField())
    tags = serializers.DictField(child=serializers.CharField())
    created_at = serializers.DateTimeField(allow_null=True)

    def get_address(self, version: MlflowVersion) -> str:
        return f"models:/{version.name}/{version.number}"


class MlflowModelsSerializer(Serializer):
    results = MlflowModelSerializer(many=True, source="rows")
    next_page = serializers.CharField(source="next_token", help_text="Empty on the last page.")


class MlflowVersionsSerializer(Serializer):
    results = MlflowVersionSerializer(many=True, source="rows")
    next_page = serializers.CharField(source="next_token", help_text="Empty on the last page.")


class MlflowModelFilterSerializer(Serializer):
    search = serializers.CharField(default="", allow_blank=True, help_text="part of the name")
    page = serializers.CharField(
        default="", allow_blank=True, help_text="next_page of the page before"
    )


class MlflowVersionFilterSerializer(Serializer):
    model = serializers.CharField(help_text="name of the registered model")
    page = serializers.CharField(
        default="", allow_blank=True, help_text="next_page of the page before"
    )
