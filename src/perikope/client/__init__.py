"""Search the index of a server as if it were on this machine.

    address.py       the address of a server
    connecting.py    `perikope.connect` and `perikope.connect_async`
    index.py         `RemoteIndex`, for programs that wait
    async_index.py   `AsyncRemoteIndex`, for programs that do other things meanwhile
    results.py       the results of a search
    questions.py     requests, made from the declarations of the operations
    asking.py        the query and the options of a search as values of a request
    decoding.py      answers, from JSON to the classes that the operations declare
    local_only.py    what only an index on this machine has
    warning.py       warnings of the server
    failures.py      problems and damaged answers as errors
    transport.py     connections; the only module that imports httpx

The package `httpx` is an extra, so nothing here imports it before a connection is made.
"""
