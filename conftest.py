"""What is not collected: modules of an extra that is not installed, whose examples would fail on import."""

from importlib.util import find_spec

ADAPTERS = {"langchain": "langchain_core", "llamaindex": "llama_index", "haystack": "haystack", "pyterrier": "pyterrier", "mcp": "mcp"}
"""The package that each adapter needs."""

collect_ignore_glob = [] if find_spec("torch") else ["src/perikope/neural/*", "src/perikope/cli/train_guard.py"]
collect_ignore_glob += [f"src/perikope/adapters/{name}.py" for name, package in ADAPTERS.items() if find_spec(package) is None]
collect_ignore_glob += [] if find_spec("ray") else [f"src/perikope/cluster/{name}.py" for name in ("on_ray", "ray_*", "serving")]
collect_ignore_glob += [] if find_spec("mcp") else ["src/perikope/service/mcp_protocol.py", "src/perikope/server/assistants.py"]
