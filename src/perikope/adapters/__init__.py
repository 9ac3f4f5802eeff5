"""Adapters: perikope inside other frameworks, one file per framework, imported only when it is used.

    searched.py        the index that an adapter searches: an `Index`, a folder, or the address of a server
    langchain.py       retrievers and a compressor for LangChain
    llamaindex.py      retriever, node parser and reader for LlamaIndex
    haystack.py        a retriever component for Haystack
    pyterrier.py       retriever and re-ranker for PyTerrier
    mcp_tools.py       tools and resources for language models, without a protocol
    mcp_server.py      the same as a server of the Model Context Protocol

Every adapter takes the options of a search (`perikope.SearchOptions`) as keywords, and declares none of its own.
"""
