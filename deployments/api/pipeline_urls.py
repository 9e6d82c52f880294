from django.urls import URLPattern, path

from deployments.api import pipelines

_CHANGE = "pipeline-changes/<int:pipeline_change_id>"

urlpatterns: list[URLPattern] = [
    path("pipelines", pipelines.PipelinesView.as_view(), name="pipelines"),
    path("pipelines/preview", pipelines.PipelinePreviewView.as_view(), name="pipeline-preview"),
    path("pipelines/<int:pipeline_id>", pipelines.PipelineView.as_view(), name="pipeline"),
    path(
        "pipelines/<int:pipeline_id>/retire",
        pipelines.RetirePipelineView.as_view(),
        name="retire-pipeline",
    ),
    path(
        "pipelines/<int:pipeline_id>/stop",
        pipelines.StopPipelineView.as_view(),
        name="stop-pipeline",
    ),
    path(
        "pipelines/<int:pipeline_id>/start",
        pipelines.StartPipelineView.as_view(),
        name="start-pipeline",
    ),
    path("pipeline-changes", pipelines.PipelineChangesView.as_view(), name="pipeline-changes"),
    path(_CHANGE, pipelines.PipelineChangeView.as_view(), name="pipeline-change"),
    path(f"{_CHANGE}/approve", pipelines.ApprovePipelineView.as_view(), name="approve-pipeline"),
    path(f"{_CHANGE}/reject", pipelines.RejectPipelineView.as_view(), name="reject-pipeline"),
    path(f"{_CHANGE}/withdraw", pipelines.WithdrawPipelineView.as_view(), name="withdraw-pipeline"),
]
