from django.urls import URLPattern, path

from deployments.web import (
    golden,
    registry_lists,
    registry_model,
    registry_reference,
    registry_upload,
    registry_version,
)

_MODEL = "models/<slug:team>/<slug:name>"
_VERSION = f"{_MODEL}/<int:number>"

urlpatterns: list[URLPattern] = [
    path("models", registry_lists.models, name="models"),
    path("upload", registry_upload.upload, name="upload"),
    path("register", registry_reference.register, name="register-reference"),
    path(_MODEL, registry_model.model_page, name="model"),
    path(f"{_MODEL}/compare", registry_model.compare, name="compare-versions"),
    path(f"{_MODEL}/golden-requests", golden.save_answer, name="save-golden"),
    path(f"{_MODEL}/golden-requests/new", golden.new_golden, name="new-golden"),
    path(
        f"{_MODEL}/golden-requests/<int:golden_id>/delete",
        golden.delete_golden,
        name="delete-golden",
    ),
    path(f"{_MODEL}/edit", registry_model.edit_model, name="edit-model"),
    path(_VERSION, registry_version.version_page, name="version"),
    path(f"{_VERSION}/checks", registry_version.checks, name="version-checks"),
    path(f"{_VERSION}/metadata", registry_version.edit_metadata, name="version-metadata"),
    path(f"{_VERSION}/alias", registry_version.set_alias, name="version-alias"),
    path(f"{_VERSION}/archive", registry_version.archive, name="version-archive"),
    path(f"{_VERSION}/restore", registry_version.restore, name="version-restore"),
    path(f"{_VERSION}/release", registry_version.release, name="version-release"),
]
