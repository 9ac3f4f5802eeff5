"""`perikope serve`: an HTTP server for indexes.

    settings.py    the settings of a server, declared once
    frames.py      messages between the processes
    handler.py     a process that runs operations: reads the request, runs it, writes the answer
    pool.py        the processes that read, and the queue in front of them
    writer.py      the process that writes, and the queue in front of it
    ends.py        how a process ended, for the log
    served.py      the indexes of a server, and which commit is the last one of each
    folders.py     a folder of documents: its index in the cache, and changes of its files
    routes.py      from method and path to an operation
    gate.py        who may do what: hosts, origins, tokens, permissions
    problems.py    errors as `application/problem+json`
    openapi.py     the OpenAPI document
    metrics.py     numbers for Prometheus
    logs.py        one line of JSON per request
    incoming.py    a request as it comes in: its head, and its body within limits
    cache.py       answers that are sent again
    app.py         one request from start to end (ASGI)
    protocol.py    limits on connections, heads and slow clients (uvicorn)
    running.py     start, signals, shutdown

One process speaks HTTP and decides. It never opens an index. As many processes as there are cores read; one process
writes.
"""
