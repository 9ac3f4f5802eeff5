"""Neural rankers as a kind of system in experiments."""

from __future__ import annotations

from perikope.evaluation.experiment.kinds import SystemKind
from perikope.neural.preparing import prepare_collections
from perikope.neural.ranker_job import open_jobs, share_tokens
from perikope.neural.ranker_settings import fingerprint, read_ranker, read_shared
from perikope.neural.report import describe, facts, learned_tables
from perikope.neural.system_keys import NeuralKeys

NEURAL = SystemKind(
    keys=NeuralKeys,
    read=read_shared,
    read_system=read_ranker,
    fingerprint=fingerprint,
    prepare=prepare_collections,
    share=share_tokens,
    open=open_jobs,
    describe=describe,
    facts=facts,
    tables=learned_tables,
)
