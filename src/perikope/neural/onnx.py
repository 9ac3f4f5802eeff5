"""Encode on a CPU with ONNX Runtime, in float32 or with the weights of matrix products as 8-bit integers.

    x W ≈ s_x s_W (x_q - z_x) W_q        dynamic quantisation

W_q and x_q are 8-bit integers. The scale s_W is fixed per column of W. The scale s_x and the zero point z_x are
computed per input at run time.

Transformer, projection and normalisation are one ONNX graph, for any number of texts of any length. The graph is made
once per set of weights and kept in the user's cache folder. Its file name is a hash of the weights and versions.
Products of activations (attention) stay in float32. The projection stays in float32 too: it is a small part of the
work, and no later layer would reduce its error.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import tempfile
import warnings
from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from perikope.core import files
from perikope.core.errors import MissingExtra, UsageError
from perikope.kernels.jit import cache_directory
from perikope.neural.encoder import Encoder

try:
    import torch
    from torch import Tensor, nn
except ImportError as missing:
    raise MissingExtra(missing.name or "torch", "neural") from None

_PACKAGES = ("onnxruntime", "onnx", "onnxscript")
_FORMAT = 2
"""Version of the graphs that this module makes. Increase it when the same weights give a different graph."""
_LARGEST = (1 << 31) - (1 << 24)
"""Maximum bytes of weights in one ONNX file. The format allows files of at most 2 GiB."""
_KEPT = 8
"""Maximum graphs in the cache folder; the most recently used ones are kept. The graph of all-MiniLM-L6-v2 has 59 MB in
int8, most of it for embeddings, and 91 MB in float32."""


class OnnxEncoder(Encoder):
    """An encoder that computes with ONNX Runtime. It has the tokenizer and settings of the original encoder.

    `save` writes the same files as the original encoder.
    """

    def __init__(self, encoder: Encoder, *, int8: bool = True) -> None:
        """Read the ONNX graph of an encoder from the cache, or make it. The encoder must be in float32 on the CPU."""
        for package in _PACKAGES:
            if find_spec(package) is None:
                raise MissingExtra(package, "onnx")
        first = next(encoder.transformer.parameters())
        if first.dtype != torch.float32 or first.device.type != "cpu":
            raise UsageError(
                f"ONNX needs an encoder in float32 on the CPU, not {first.dtype} on {first.device}: load it with runtime='onnx'"
            )
        super().__init__(
            encoder.transformer, encoder.tokenizer, encoder.dimension if encoder.projection is not None else 0, encoder.settings
        )
        self.projection = encoder.projection
        self.eval()
        self._session = _session_of(self, int8)

    @classmethod
    def load(cls, *arguments: Any, runtime: str = "onnx-int8", **options: Any) -> Encoder:
        """Load an encoder with the arguments of `Encoder.load`; the default runtime is `onnx-int8`."""
        return Encoder.load(*arguments, runtime=runtime, **options)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Compute the same as `Encoder.forward`, without gradients: (texts, tokens, dimension).

        `tokens` (texts, tokens) are token ids; `mask` (texts, tokens) is false for padding.
        """
        if not tokens.numel():
            return torch.zeros(*tokens.shape, self.dimension)
        (vectors,) = self._session.run(None, {"tokens": tokens.numpy(), "mask": mask.numpy()})
        return torch.from_numpy(vectors)

    def train(self, mode: bool = True) -> OnnxEncoder:
        """Switch to evaluation mode.

        Raises `UsageError` if `mode` is true, because ONNX Runtime computes no gradients.
        """
        if mode:
            raise UsageError("an encoder in ONNX cannot be trained: load it with runtime='torch'")
        super().train(False)
        return self

    def fit_projection(self, texts: Any) -> None:
        """Raise `UsageError`, because the projection is already part of the ONNX graph."""
        raise UsageError("the projection of an encoder in ONNX cannot be changed: fit it before making the OnnxEncoder")


class _Graph(nn.Module):
    """The module that is exported to ONNX. It calls `Encoder.forward` even if the encoder's class overrides it."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Vectors (texts, tokens, dimension) of token ids (texts, tokens) with their mask (texts, tokens)."""
        return Encoder.forward(self.encoder, tokens, mask)


def _session_of(encoder: Encoder, int8: bool) -> Any:
    """A session of ONNX Runtime for an encoder; the graph is made if it is not in the cache or cannot be read."""
    folder = graph_folder()
    if folder is None:
        with tempfile.TemporaryDirectory() as temporary:
            return _open(_export(encoder, int8, Path(temporary)))
    path = folder / f"{_key(encoder, int8)}.onnx"
    # The errors of ONNX Runtime have no common class. Whatever is wrong with the file, it can be made again.
    with contextlib.suppress(Exception):
        session = _open(path)
        path.touch()
        return session
    with tempfile.TemporaryDirectory(dir=folder, prefix=".new-") as temporary:
        # The temporary folder is on the same file system, so that the file appears complete or not at all.
        files.put_in_place(_export(encoder, int8, Path(temporary)), path)
    for old in sorted(folder.glob("*.onnx"), key=lambda file: file.stat().st_mtime_ns)[:-_KEPT]:
        files.remove_unless_held(old)
    return _open(path)


def graph_folder() -> Path | None:
    """The cache folder for ONNX graphs, next to the folder of compiled kernels; None if no folder can be written.

    The folder is made if it is missing. Only its owner can read it.
    """
    kernels = cache_directory()
    if kernels is None:
        return None
    folder = Path(kernels).parent / "onnx"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _open(path: Path) -> Any:
    """A session of ONNX Runtime for the graph in a file, with as many threads as torch uses."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def _key(encoder: Encoder, int8: bool) -> str:
    """A hash of everything that determines the graph: weights, configuration of the transformer, package versions."""
    config = encoder.transformer.config.to_dict()  # type: ignore[union-attr, operator]
    # The folder and the version that saved the weights are ignored: the same weights in two folders give one graph.
    ignored = ("_name_or_path", "transformers_version", "dtype", "torch_dtype")
    architecture = {name: value for name, value in config.items() if name not in ignored}
    programs = {name: version(name) for name in ("torch", "transformers", *_PACKAGES)}
    quantised = {"int8": int8, "reduced": int8 and _reduced_range()}
    digest = hashlib.sha256()
    facts = [_FORMAT, architecture, programs, quantised, type(encoder.transformer).__name__]
    digest.update(json.dumps(facts, sort_keys=True, default=str).encode())
    for name, value in sorted(encoder.state_dict().items()):
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        digest.update(np.ascontiguousarray(value.detach().numpy()).data)
    return digest.hexdigest()


def _reduced_range() -> bool:
    """Whether quantised weights use only 7 of 8 bits on this processor.

    Processors without VNNI instructions add pairs of products in 16 bits. Two products of 8-bit weights could overflow.
    """
    return not getattr(torch.cpu, "_is_vnni_supported", bool)()


def _export(encoder: Encoder, int8: bool, folder: Path) -> Path:
    """Write the graph of an encoder to a folder and return the path of the file."""
    size = sum(value.numel() * value.element_size() for value in encoder.state_dict().values())
    if size > _LARGEST:
        raise UsageError(f"an encoder of {size / 1e9:.1f} GB is too large for one ONNX file: load it with runtime='torch'")
    plain, prepared, quantised = (folder / name for name in ("float32.onnx", "prepared.onnx", "int8.onnx"))
    # The exporter would treat a size of 1 as a constant. One text is padded, so that masks become part of the graph.
    tokens = torch.zeros(2, 3, dtype=torch.int64)
    mask = torch.tensor([[True, True, True], [True, True, False]])
    sizes = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    with _quiet(), torch.no_grad():
        torch.onnx.export(
            _Graph(encoder).eval(),
            (tokens, mask),
            plain,
            dynamo=True,
            input_names=["tokens", "mask"],
            output_names=["vectors"],
            dynamic_shapes={"tokens": sizes, "mask": sizes},
            external_data=False,
            verbose=False,
        )
        if not int8:
            return plain
        from onnxruntime.quantization import QuantType, quantize_dynamic
        from onnxruntime.quantization.shape_inference import quant_pre_process

        quant_pre_process(str(plain), str(prepared), skip_symbolic_shape=True)
        quantize_dynamic(
            prepared,
            quantised,
            op_types_to_quantize=["MatMul"],
            per_channel=True,
            reduce_range=_reduced_range(),
            weight_type=QuantType.QInt8,
            extra_options={"MatMulConstBOnly": True},
            nodes_to_exclude=_products(prepared)[-1:] if encoder.projection is not None else [],
        )
    return quantised


def _products(path: Path) -> list[str]:
    """Names of the matrix products with weights in a graph, in order. The projection, if there is one, is the last."""
    import onnx

    graph = onnx.load(path).graph
    weights = {weight.name for weight in graph.initializer}
    return [node.name for node in graph.node if node.op_type == "MatMul" and node.input[1] in weights]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the warnings and log messages of the exporter."""
    logger = logging.getLogger("torch.onnx")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)
