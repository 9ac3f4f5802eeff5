"""What a server offers, without HTTP: operations on an index, declared once.

    operations.py   what an operation declares: its name, its options, its answer, and the function that runs it
    reading.py      operations that read: search, document, explanation …
    writing.py      operations that write: add and delete documents
    originals.py    which files of documents an operation may read
    answers.py      the answers, as dataclasses
    schemas.py      JSON schemas of options and answers
    assistant.py    tools and resources for assistants, made of operations
    mcp_protocol.py the same by the Model Context Protocol
    requests.py     reads the options of an operation from JSON or from a query string

Routes, the OpenAPI document, the client and the reference page all derive from these declarations.
"""
