from django.urls import URLPattern, path

from deployments.registry.api import models, triton_config, uploads, version_lists, versions

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
    path("versions", version_lists.VersionsView.as_view(), name="versions"),
    path("versions/facets", version_lists.VersionFacetsView.as_view(), name="version-facets"),
    path(
        "versions/quarantined-in-use",
        version_lists.QuarantinedUsesView.as_view(),
        name="quarantined-in-use",
    ),
    path("versions/preview", uploads.PreviewView.as_view(), name="preview-upload"),
    path(_VERSION, versions.VersionView.as_view(), name="version"),
    path(f"{_VERSION}/starts", versions.VersionStartsView.as_view(), name="version-starts"),
    path(
        f"{_VERSION}/triton-config",
        triton_config.TritonConfigView.as_view(),
        name="triton-config",
    ),
    path(f"{_VERSION}/files", uploads.FilesView.as_view(), name="files"),
    path(f"{_VERSION}/files/complete", uploads.CompleteFilesView.as_view(), name="complete-files"),
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
