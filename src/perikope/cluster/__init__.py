"""Clusters: indexes that are divided among shards, on one machine or on several."""
