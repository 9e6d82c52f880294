"""The task of the sandbox that reads a TorchScript archive: the arguments of `forward` and the size of its weights.

Layout: pytorch/pytorch, torch/csrc/jit/docs/serialization.md. The class of the model is what `data.pkl` makes;
its source is under `code/` at the path of its module. Nothing is compiled, and no tensor is read: how many elements
it has is in the pickle that refers to it.
"""

from __future__ import annotations

import ast
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any, Final

from deployments.registry.domain.artifacts.reading import Artifact, open_file
from deployments.registry.domain.not_servable import NotServable, printable
from deployments.registry.domain.pickles import symbolic
from deployments.registry.domain.pickles.symbolic import Made
from deployments.registry.domain.torchscript import stored_tensors

_MAX_MEMBER_BYTES: Final = 64 * 2**20
_SAVE: Final = "Save it again: torch.jit.script(model).save('model.pt')."
_WEIGHTS: Final = ("data/", "constants/")


def read(argument: Mapping[str, Any], artifact: Artifact) -> dict[str, Any]:
    """Read a file in the sandbox: {"main"} to "arguments" (name and type of each), "returns", "weights_bytes"
    and "parameters" (None if the file does not tell). Raises NotServable.
    """
    path = str(argument["main"])
    try:
        with zipfile.ZipFile(open_file(artifact, path)) as archive:
            return _read(archive)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise NotServable(
            f"The archive is damaged: {printable(str(error))[:100]}. {_SAVE}"
        ) from error


def _read(archive: zipfile.ZipFile) -> dict[str, Any]:
    members = {item.filename: item for item in archive.infolist()}
    main = next((name for name in members if name.endswith("/data.pkl")), "")
    root = main.removesuffix("data.pkl")
    value = _value(archive, main)
    name = _class_name(value)
    module, _, short = name.rpartition(".")
    source = _member(archive, f"{root}code/{module.replace('.', '/')}.py")
    forward = _forward(source, short)
    arguments = forward.args.args[1:]
    defaults = len(forward.args.defaults)
    return {
        "arguments": [{"name": item.arg, "type": _text(item.annotation)} for item in arguments],
        "defaults": defaults,
        "returns": _returned(forward.returns),
        "weights_bytes": sum(
            item.file_size
            for path, item in members.items()
            if path.startswith(tuple(root + w for w in _WEIGHTS))
        ),
        "parameters": _parameters(archive, root, value),
    }


def _value(archive: zipfile.ZipFile, member: str) -> Any:
    size = archive.getinfo(member).file_size if member else 0
    if not member or size > _MAX_MEMBER_BYTES:
        raise NotServable(f"The archive has no readable data.pkl. {_SAVE}")
    with archive.open(member) as file:
        return symbolic.read(file, size=size).value


def _class_name(value: Any) -> str:
    if not isinstance(value, Made) or not value.name.startswith("__torch__."):
        raise NotServable(f"data.pkl holds no module of TorchScript. {_SAVE}")
    return value.name


def _parameters(archive: zipfile.ZipFile, root: str, value: Any) -> int | None:
    """Count the elements of all stored tensors, buffers and the constants of a frozen model included. None where
    the archive contradicts itself.
    """
    members = {item.filename: item.file_size for item in archive.infolist()}
    counts: dict[str, int] = {}
    pickles = {"data/": value}
    if f"{root}constants.pkl" in members:
        pickles["constants/"] = _value(archive, f"{root}constants.pkl")
    for folder, pickled in pickles.items():
        for key, elements in stored_tensors.storages_in(pickled):
            path = f"{root}{folder}{key}"
            # The smallest type has a byte.
            if not 0 <= elements <= members.get(path, -1):
                return None
            counts[path] = max(elements, counts.get(path, 0))
    return sum(counts.values())


def _member(archive: zipfile.ZipFile, name: str) -> str:
    try:
        item = archive.getinfo(name)
    except KeyError as error:
        raise NotServable(
            f"The archive has no {printable(name)[:100]}, the code of the model. {_SAVE}"
        ) from error
    if item.file_size > _MAX_MEMBER_BYTES:
        raise NotServable(
            f"{printable(name)[:100]} is larger than {_MAX_MEMBER_BYTES // 2**20} MiB."
        )
    return archive.read(item).decode(errors="replace")


def _forward(source: str, name: str) -> ast.FunctionDef:
    """Find the method forward of a class. TorchScript is written as Python, so its syntax tree is enough."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NotServable(f"The code of the model cannot be parsed. {_SAVE}") from error
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            for item in node.body:
                if isinstance(item, ast.FunctionDef) and item.name == "forward" and item.args.args:
                    return item
    raise NotServable(f"The model has no method forward, which Triton calls. {_SAVE}")


def _text(annotation: ast.expr | None) -> str:
    return "Tensor" if annotation is None else ast.unparse(annotation)[:200]


def _returned(annotation: ast.expr | None) -> list[str]:
    """Return the types of the values, one for each output."""
    if isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) == "Tuple":
        items = annotation.slice
        return [_text(item) for item in (items.elts if isinstance(items, ast.Tuple) else [items])]
    return [_text(annotation)]
