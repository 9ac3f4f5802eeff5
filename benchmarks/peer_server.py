"""A minimal FastAPI endpoint over tantivy, as many services have one: the peer of `python -m benchmarks serving`.

Runs in the peers' environment: python peer_server.py PORT DOCUMENTS.jsonl WORKERS. Passages are the documents of
tantivy; an answer has the same ten passages' worth of text as ours, with heading path, title and neighbours.
"""

import json
import sys
import tempfile

import tantivy
import uvicorn
from fastapi import FastAPI

app = FastAPI()
FOLDER_FILE = tempfile.gettempdir() + "/perikope-peer-server-index"
"""Tells the processes of uvicorn where the index is."""
FIELDS = ("document", "passage", "title", "path", "before", "after")


def build(path: str, folder: str) -> None:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("text", stored=True, tokenizer_name="en_stem")
    for name in FIELDS:
        builder.add_text_field(name, stored=True, tokenizer_name="raw")
    index = tantivy.Index(builder.build(), path=folder)
    writer = index.writer(100_000_000, 1)
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            writer.add_document(tantivy.Document(**json.loads(line)))
    writer.commit()
    writer.wait_merging_threads()


state: dict[str, object] = {}


@app.get("/search")
def search(query: str, k: int = 10) -> dict[str, object]:
    if not state:
        with open(FOLDER_FILE, encoding="utf-8") as file:
            index = tantivy.Index.open(file.read())
        state["index"], state["searcher"] = index, index.searcher()
    index, searcher = state["index"], state["searcher"]
    words = " ".join(word for word in "".join(sign if sign.isalnum() else " " for sign in query).split())
    found = searcher.search(index.parse_query(words, ["text"]), k).hits
    hits = []
    for rank, (score, address) in enumerate(found, 1):
        stored = searcher.doc(address)
        hits.append({"rank": rank, "score": score, "text": stored["text"][0], **{name: stored[name][0] for name in FIELDS}})
    return {"hits": hits}


if __name__ == "__main__":
    port, documents, workers = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    folder = tempfile.mkdtemp(prefix="perikope-peer-")
    build(documents, folder)
    with open(FOLDER_FILE, "w", encoding="utf-8") as file:
        file.write(folder)
    print("built", flush=True)
    uvicorn.run("peer_server:app", host="127.0.0.1", port=port, workers=workers, log_level="error")
