"""Answers requests inside one installation of perikope; `benchmarks.installations` starts it by its path.

It reads one JSON object per line from standard input and writes one per line to standard output. It needs the standard
library and the public names of perikope only, so that older and newer installations run the same file:

{"action": "facts"}                              folder and version of perikope, the installed packages
{"action": "open", "index": FOLDER}              opens an index for the searches that follow
{"action": "search", "query": TEXT, "options": {…}, "hits": BOOLEAN}
                                                 CPU and wall-clock seconds of a search; hits: also reads the results
{"action": "first", "index": FOLDER, "query": TEXT, "options": {…}, "hits": BOOLEAN, "steps": […]}
                                                 CPU and wall-clock seconds of some of the steps "open" and "search" in
                                                 an index that is opened anew
{"action": "command", "arguments": […]}          runs the command line, returns its exit status and messages

Every answer to a request that fails is {"problem": MESSAGE}.
"""

from __future__ import annotations

import gc
import io
import json
import os
import platform
import sys
import time
import warnings
from contextlib import redirect_stderr, redirect_stdout
from importlib import metadata

import perikope as pk


class Worker:
    def __init__(self):
        self.index = None

    def facts(self, request):
        packages = {distribution.metadata["Name"]: distribution.version for distribution in metadata.distributions()}
        return {
            "folder": os.path.dirname(os.path.abspath(pk.__file__)),
            "version": pk.__version__,
            "python": platform.python_version(),
            "packages": packages,
        }

    def open(self, request):
        self.index = pk.Index.open(request["index"])
        return {"documents": len(self.index), "passages": self.index.passages}

    def search(self, request):
        options, hits = request["options"], request["hits"]
        gc.collect()
        gc.freeze()  # a collection of all objects by chance would cost more than most queries
        wall, cpu = time.perf_counter(), time.process_time()
        results = self.index.search(request["query"], **options)
        if hits:
            list(results)
        else:
            len(results)
        return {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}

    def first(self, request):
        gc.collect()
        gc.freeze()
        times = [(time.process_time(), time.perf_counter())]
        index = pk.Index.open(request["index"])
        times.append((time.process_time(), time.perf_counter()))
        if "search" in request["steps"]:
            results = index.search(request["query"], **request["options"])
            list(results) if request["hits"] else len(results)
        times.append((time.process_time(), time.perf_counter()))
        first, end = 0 if "open" in request["steps"] else 1, 2 if "search" in request["steps"] else 1
        return {"cpu": times[end][0] - times[first][0], "wall": times[end][1] - times[first][1]}

    def command(self, request):
        """Call the console script in this process: most of a short command is the start of Python."""
        (script,) = metadata.entry_points(group="console_scripts", name="perikope")
        errors, arguments, status = io.StringIO(), sys.argv, 0
        sys.argv = ["perikope", *request["arguments"]]
        try:
            with redirect_stdout(io.StringIO()), redirect_stderr(errors):
                script.load()()
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else 1 if ended.code else 0
        finally:
            sys.argv = arguments
        return {"status": status, "errors": errors.getvalue()}


def main():
    warnings.simplefilter("ignore")  # a collection may lack what a model is about
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever else is printed must not be read as an answer
    worker = Worker()
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = getattr(worker, request["action"])(request)
        except Exception as error:
            answer = {"problem": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
