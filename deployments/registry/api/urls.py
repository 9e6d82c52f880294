from django.urls import URLPattern, path

from deployments.registry.api import models, uploads, versions

_MODEL = "models/<slug:team>/<str:name>"
_VERSION = "versions/<int:version_id>"

urlpatterns: list[URLPattern] = [
    path("models", models.ModelsView.as_view(), name="models"),
    path(_MODEL, models.ModelView.as_view(), name="model"),
    path(f"{_MODEL}/aliases", models.AliasesView.as_view(), name="aliases"),
    path(f"{_MODEL}/aliases/<str:alias>", models.AliasView.as_view(), name="alias"),
    path(f"{_MODEL}/versions", uploads.ModelVersionsView.as_view(), name="model-versions"),
    path(
        f"{_MODEL}/versions/<int:number>",
        versions.NumberedVersionView.as_view(),
        name="model-version",
    ),
    path(f"{_MODEL}/references", versions.ReferencesView.as_view(), name="model-references"),
    path("versions", versions.VersionsView.as_view(), name="versions"),
    path(_VERSION, versions.VersionView.as_view(), name="version"),
    path(f"{_VERSION}/parts", uploads.PartsView.as_view(), name="parts"),
    path(f"{_VERSION}/complete", uploads.CompleteView.as_view(), name="complete"),
    path(f"{_VERSION}/abandon", uploads.AbandonView.as_view(), name="abandon"),
    path(f"{_VERSION}/stop", uploads.StopVerificationView.as_view(), name="stop"),
    path(f"{_VERSION}/discard", uploads.DiscardView.as_view(), name="discard"),
    path(f"{_VERSION}/declare", versions.DeclareView.as_view(), name="declare"),
    path(f"{_VERSION}/archive", versions.ArchiveView.as_view(), name="archive"),
    path(f"{_VERSION}/restore", versions.RestoreView.as_view(), name="restore"),
    path(f"{_VERSION}/release", versions.ReleaseView.as_view(), name="release"),
]
