"""Say which parts of the program `make test` leaves out on this machine, and what would bring them in.

python -m tests.skipped
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

from tests.conftest import SHARED_DATA
from tests.page.chromium import missing
from tests.page.tools import missing_tools
from tests.support.nodes import why_not_started

ROOT = Path(__file__).parents[1]
NEURAL = "make test-neural"
ADAPTERS = "pip install --editable '.[dev]'"
PARTS = (
    ("langchain_core", "the adapter for LangChain", ADAPTERS),
    ("langchain_tests", "LangChain's own tests of retrievers", "pip install langchain-tests"),
    ("llama_index", "the adapter for LlamaIndex", ADAPTERS),
    ("haystack", "the adapter for Haystack", ADAPTERS),
    ("pyterrier", "the adapter for PyTerrier", ADAPTERS),
    ("ir_datasets", "documents and topics of ir_datasets", ADAPTERS),
    ("mcp", "assistants (Model Context Protocol)", ADAPTERS),
    ("nbclient", "notebooks in a kernel of Jupyter", "pip install nbclient ipykernel"),
    ("sphinx", "the documentation site", "pip install --editable '.[docs]'"),
    ("moto", "clusters in object storage", ADAPTERS),
    ("obstore", "clusters in object storage", ADAPTERS),
    ("ray", "replicas of shards and their questions", "make test-cluster"),
    ("kubernetes_validate", "the Kubernetes example against the schemas of Kubernetes", "pip install kubernetes-validate"),
    ("torch", "neural models, encoders and cross-encoders", NEURAL),
    ("onnxruntime", "encoders in ONNX Runtime", NEURAL),
    ("sentence_transformers", "the comparison of encoders with Sentence Transformers", "pip install sentence-transformers"),
)
"""Package that a part needs, what is then not tested, and how it is installed."""


def left_out() -> list[str]:
    """One sentence for each part that is not tested here."""
    reasons = [f"not tested: {what}; {package} is not installed ({how})" for package, what, how in PARTS if find_spec(package) is None]
    if not SHARED_DATA.is_dir():
        reasons.append(f"not tested: real collections; there are none at {SHARED_DATA} (PERIKOPE_SHARED_DATA)")
    return [*reasons, *filter(None, (missing(), missing_tools(), why_not_started()))]


if __name__ == "__main__":
    reasons = left_out()
    sys.stdout.writelines(f"SKIPPED: {reason}\n" for reason in reasons)
    if not reasons:
        sys.stdout.write("nothing was skipped for lack of a package, a browser or data\n")
