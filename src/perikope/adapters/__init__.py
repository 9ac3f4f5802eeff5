"""Adapters: perikope inside other frameworks, one file per framework, imported only when it is used.

    searched.py        the index that an adapter searches: an `Index`, a folder, or the address of a server
    langchain.py       retrievers and a compressor for LangChain
    llamaindex.py      retriever, node parser and reader for LlamaIndex
    haystack.py        a retriever component for Haystack
    pyterrier.py       retriever and re-ranker for PyTerrier
    sentence_transformers.py   a cross-encoder as a model
    mcp.py             the Model Context Protocol over standard input and output

Every adapter takes the options of a search (`perikope.SearchOptions`) as keywords, and declares none of its own.
"""
