"""A model with many versions, aliases and golden requests; versions with many files and attestations."""

from __future__ import annotations

from datetime import timedelta

from deployments.models import (
    Alias,
    ArtifactFile,
    Attestation,
    GoldenRequest,
    Import,
    ImportedFile,
    Model,
    ModelVersion,
    SigningRule,
    TokenIssuer,
    TrustedSigner,
    TrustRoot,
    VersionLabel,
    VersionMetric,
)
from deployments.registry.services import search_index
from portal.core import clock
from tests.portal.api.full_world import FullWorld
from tests.portal.many_rows.copies import copies, digest

_README = "# Detector\n\nFinds defects on photos of a line. Trained by the vision team. " * 20


def fill(full: FullWorld, scale: float) -> None:
    names, now = full.names, clock.now()
    version = ModelVersion.objects.get(pk=names["version_id"])
    ModelVersion.objects.filter(model_id=version.model_id).update(readme=_README)
    version.refresh_from_db()
    versions = copies(
        version,
        400 * scale,
        number=lambda n: 10 + n,
        state=lambda n: "archived" if n % 7 == 0 else "ready",
        sha256=lambda n: digest("version", n),
        metadata=lambda n: {
            "metrics": {"accuracy": n % 100 / 100, "latency_ms": n},
            "labels": {"line": f"l{n % 9}"},
        },
        created_at=lambda n: now - timedelta(days=400 - n),
    )
    _index([version, *versions])
    _quarantine(full, scale, version)
    copies(
        Alias.objects.get(model=version.model, name="champion"),
        50 * scale,
        name=lambda n: f"alias-{n}",
        version_id=lambda n: versions[n % len(versions)].pk,
    )
    _files(full, scale, version)
    copies(
        GoldenRequest.objects.get(pk=names["golden_id"]),
        100 * scale,
        name=lambda n: f"golden-{n}",
    )
    copies(
        Attestation.objects.get(pk=names["attestation_id"]),
        50 * scale,
        sha256=lambda n: digest("attestation", n),
    )
    copies(
        TrustedSigner.objects.get(pk=names["signer_id"]), 60 * scale, name=lambda n: f"signer-{n}"
    )
    copies(TrustRoot.objects.get(pk=names["root_id"]), 40 * scale, name=lambda n: f"root-{n}")
    copies(
        TokenIssuer.objects.get(pk=names["token_issuer_id"]),
        40 * scale,
        name=lambda n: f"issuer-{n}",
    )
    copies(
        SigningRule.objects.get(pk=names["signing_rule_id"]),
        40 * scale,
        name=lambda n: f"rule-{n}",
    )


def _index(versions: list[ModelVersion]) -> None:
    VersionMetric.objects.bulk_create(
        VersionMetric(version=version, name=name, value=value)
        for version in versions
        for name, value in version.metadata["metrics"].items()
        if not version.metric_rows.exists()
    )
    VersionLabel.objects.bulk_create(
        VersionLabel(version=version, key=key, value=value)
        for version in versions
        for key, value in version.metadata.get("labels", {}).items()
    )
    for version in versions[:50]:
        search_index.write(version)


def _quarantine(full: FullWorld, scale: float, version: ModelVersion) -> None:
    """Quarantined ones are uses of the pages of that name where they are served."""
    model = Model.objects.get(pk=version.model_id)
    others = copies(model, 100 * scale, name=lambda n: f"another-{n}")
    copies(
        version,
        len(others),
        model_id=lambda n: others[n - 1].pk,
        number=lambda _: 1,
        state=lambda n: "quarantined" if n % 2 else "failed",
        state_reason=lambda _: "modelscan: 1 issue",
        sha256=lambda n: digest("quarantined", n),
    )


def _files(full: FullWorld, scale: float, version: ModelVersion) -> None:
    file = ArtifactFile(
        version=version,
        path="detector.onnx",
        size_bytes=10,
        part_size_bytes=10,
        sha256=digest("file"),
        s3_version_id="1",
    )
    file.save()
    copies(file, 200 * scale, path=lambda n: f"weights/part-{n:05}.bin")
    job = Import.objects.select_related("version").get(pk=full.names["import_id"])
    imported = copies(
        file,
        200 * scale,
        version_id=lambda _: job.version_id,
        path=lambda n: f"weights/part-{n:05}.bin",
    )
    ImportedFile.objects.bulk_create(
        ImportedFile(file=item, locator=f"models/{item.path}", etag="x") for item in imported
    )
    versions = copies(
        job.version,
        200 * scale,
        number=lambda n: 10 + n,
        state=lambda _: "failed",
    )
    copies(
        job,
        len(versions),
        version_id=lambda n: versions[n - 1].pk,
        state=lambda n: ("failed", "done", "canceled")[n % 3],
        ended_at=lambda _: clock.now(),
    )
