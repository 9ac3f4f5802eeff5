"""Reads files of complex formats in a process of their own, which can be ended.

`process` starts that process and talks to it, `serving` runs in it. The other modules turn a file into blocks.
"""
