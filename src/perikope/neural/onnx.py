"""The encoder in ONNX Runtime, for encoding on a CPU: the same graph in float32, or with the weights of its products as 8-bit integers.

    x W ≈ s_x s_W (x_q - z_x) W_q        s_W for each column of W, s_x and z_x for each input as it comes (dynamic quantisation)

Transformer, projection and normalisation are one graph, for any number of texts of any length. It is made of an encoder's weights once and
kept in a folder of the user, under their hash. Products of activations with one another (attention) stay float32, and
so does the projection, a small part of the work behind which nothing evens out its error.
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
"""Of the graph; another number where this module makes another one of the same weights."""
_LARGEST = (1 << 31) - (1 << 24)
"""Bytes of weights that fit into one file of ONNX, whose format ends at 2 GiB."""
_KEPT = 8
"""Graphs, those that were used last; one of all-MiniLM-L6-v2 has 59 MB in int8, most of it embeddings, and 91 in float32."""


class OnnxEncoder(Encoder):
    """An encoder whose vectors ONNX Runtime computes; tokens, settings and what is saved are those of the encoder that it is made of."""

    def __init__(self, encoder: Encoder, *, int8: bool = True) -> None:
        for package in _PACKAGES:
            if find_spec(package) is None:
                raise MissingExtra(package, "onnx")
        first = next(encoder.transformer.parameters())
        if first.dtype != torch.float32 or first.device.type != "cpu":
            raise UsageError(f"ONNX is made of an encoder in float32 on the CPU, not of {first.dtype} on {first.device}")
        super().__init__(
            encoder.transformer, encoder.tokenizer, encoder.dimension if encoder.projection is not None else 0, encoder.settings
        )
        self.projection = encoder.projection
        self.eval()
        self._session = _session_of(self, int8)

    @classmethod
    def load(cls, *arguments: Any, runtime: str = "onnx-int8", **options: Any) -> Encoder:
        """As `Encoder.load`."""
        return Encoder.load(*arguments, runtime=runtime, **options)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """As `Encoder.forward`, without gradients."""
        if not tokens.numel():
            return torch.zeros(*tokens.shape, self.dimension)
        (vectors,) = self._session.run(None, {"tokens": tokens.numpy(), "mask": mask.numpy()})
        return torch.from_numpy(vectors)

    def train(self, mode: bool = True) -> OnnxEncoder:
        """Refused: there are no gradients."""
        if mode:
            raise UsageError("an encoder in ONNX cannot be trained: load it with runtime='torch'")
        super().train(False)
        return self

    def fit_projection(self, texts: Any) -> None:
        """Refused: the projection is in the graph already."""
        raise UsageError("the projection of an encoder in ONNX cannot be changed: fit that of the encoder that it is made of")


class _Graph(nn.Module):
    """What is exported: `Encoder.forward`, also of an encoder that computes otherwise."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        return Encoder.forward(self.encoder, tokens, mask)


def _session_of(encoder: Encoder, int8: bool) -> Any:
    """A session that computes an encoder's vectors; its graph is made where there is none yet, or one that cannot be read."""
    folder = graph_folder()
    if folder is None:
        with tempfile.TemporaryDirectory() as temporary:
            return _open(_export(encoder, int8, Path(temporary)))
    path = folder / f"{_key(encoder, int8)}.onnx"
    # The runtime's errors have no common kind of their own; whatever is wrong with the file, the weights are here to make it again.
    with contextlib.suppress(Exception):
        session = _open(path)
        path.touch()
        return session
    with tempfile.TemporaryDirectory(dir=folder, prefix=".new-") as temporary:
        # In the same folder, so that it is there as a whole or not at all.
        files.put_in_place(_export(encoder, int8, Path(temporary)), path)
    for old in sorted(folder.glob("*.onnx"), key=lambda one: one.stat().st_mtime_ns)[:-_KEPT]:
        files.remove_unless_held(old)
    return _open(path)


def graph_folder() -> Path | None:
    """The folder of the graphs, beside that of compiled kernels, private as that is; None where there is no place to write."""
    beside = cache_directory()
    if beside is None:
        return None
    folder = Path(beside).parent / "onnx"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _open(path: Path) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def _key(encoder: Encoder, int8: bool) -> str:
    """What the graph depends on: weights, settings of the transformer, and the programs that make it."""
    config = encoder.transformer.config.to_dict()  # type: ignore[union-attr, operator]
    # Where it was loaded from, and by which version: the same weights in two folders are one encoder.
    own = {name: value for name, value in config.items() if name not in ("_name_or_path", "transformers_version", "dtype", "torch_dtype")}
    programs = {name: version(name) for name in ("torch", "transformers", *_PACKAGES)}
    quantised = {"int8": int8, "reduced": int8 and _reduced_range()}
    digest = hashlib.sha256()
    digest.update(json.dumps([_FORMAT, own, programs, quantised, type(encoder.transformer).__name__], sort_keys=True, default=str).encode())
    for name, value in sorted(encoder.state_dict().items()):
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        digest.update(np.ascontiguousarray(value.detach().numpy()).data)
    return digest.hexdigest()


def _reduced_range() -> bool:
    """Whether weights take 7 bits of the 8.

    Without the instructions of VNNI, products are added in pairs in 16 bits, and two large ones would be cut off.
    """
    return not getattr(torch.cpu, "_is_vnni_supported", bool)()


def _export(encoder: Encoder, int8: bool, folder: Path) -> Path:
    """The graph of an encoder as a file in a folder."""
    size = sum(value.numel() * value.element_size() for value in encoder.state_dict().values())
    if size > _LARGEST:
        raise UsageError(f"an encoder of {size / 1e9:.1f} GB is too large for one file of ONNX: load it with runtime='torch'")
    plain, prepared, quantised = (folder / name for name in ("float32.onnx", "prepared.onnx", "int8.onnx"))
    # More than one text and token, since a size of 1 would be taken for a constant; one of them padded, so that masks are computed.
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
    """The names of the products with weights in a graph, in its order; where there is a projection, it is the last."""
    import onnx

    graph = onnx.load(path).graph
    weights = {weight.name for weight in graph.initializer}
    return [node.name for node in graph.node if node.op_type == "MatMul" and node.input[1] in weights]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without what the exporter says of itself and of operators that it could not find."""
    logger = logging.getLogger("torch.onnx")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)
