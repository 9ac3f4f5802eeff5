"""`perikope train`: fine-tune an encoder on judgements, alone or with graph attention."""

from __future__ import annotations

import hashlib
import json
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from perikope.cli.options import GroupedCommand
from perikope.cli.output import count, printable
from perikope.core.files import make_folder, replacing
from perikope.search.options import LEXICAL

if TYPE_CHECKING:
    from perikope.core.arrays import Integers
    from perikope.neural.collection import Collection
    from perikope.neural.encoder import Encoder
    from perikope.neural.hgat import HGAT, LateFusion
    from perikope.neural.training import Progress, TrainableRanker, TrainingSettings
    from perikope.neural.triples import Texts, Topics
    from perikope.search.facade import Index

_OF_ATTENTION = ("layers", "residual", "dropout", "late_fusion", "relations", "neighbours_learn")
"""Options that have an effect with graph attention only."""
_OF_GUARD = {"guards": "--guard", "guard": "--guard-strength", "guard_loss": "--guard-loss"}
"""Options of the guard, by the name of their parameter."""
_RUN, _MADE_WITH = "run", "made-with.json"
"""Folder of the checkpoints, and the file in this folder that records the settings of the training."""
_SECONDS = 60.0
"""Seconds between two progress lines if standard error is not a terminal."""


_GROUPS = {
    "Data": ("folder", "also", "validation_topics", "validation_qrels"),
    "Ranker": (
        "encoder", "dimension", "heading_path", "variant", "layers", "residual", "dropout", "late_fusion", "relations", "neighbours_learn",
    ),
    "Examples": ("strategy", "negatives", "draws", "ranked_by", "in_batch"),
    "Training": ("epochs", "batch", "encoder_rate", "rate", "schedule", "frozen_layers", "measure", "patience", "seed", "device"),
    "Guard against forgetting": ("guards", "no_guard", "guard", "guard_loss", "keep"),
}  # fmt: skip


@click.command(name="train", cls=GroupedCommand, groups=_GROUPS)
@click.argument("index", metavar="INDEX")
@click.argument("topics", metavar="TOPICS")
@click.argument("qrels", metavar="QRELS")
@click.option(
    "--to",
    "folder",
    required=True,
    metavar="FOLDER",
    help="Folder of the trained ranker. If it contains an interrupted training, the training continues.",
)
@click.option(
    "--also", multiple=True, nargs=3, metavar="INDEX TOPICS QRELS",
    help="Train on another collection too, with the same number of triples per batch. May be given several times.",
)  # fmt: skip
@click.option(
    "--validation-topics", default="", metavar="TOPICS",
    help="Topics of INDEX on which the best epoch is chosen.  [default: a tenth of TOPICS]",
)  # fmt: skip
@click.option("--validation-qrels", default="", metavar="QRELS", help="Judgements of --validation-topics.  [default: QRELS]")
@click.option(
    "--encoder",
    default="all-MiniLM-L6-v2",
    show_default=True,
    metavar="NAME|FOLDER",
    help="Encoder that is fine-tuned: a Hugging Face model, or a folder that `perikope train` wrote.",
)
@click.option(
    "--dimension", default=128, show_default=True, type=click.IntRange(0), metavar="N",
    help="Dimension of the vectors; 0 keeps the dimension of the encoder.",
)  # fmt: skip
@click.option(
    "--heading-path/--no-heading-path",
    default=True,
    show_default=True,
    help="Put the heading path of a passage before its text when it is encoded.",
)
@click.option(
    "--variant", default="", metavar="NAME",
    help="Variant of graph attention to train with the encoder: BASE, NO, LB, NS, NO_LB, NO_NS, LB_NS or NO_LB_NS.  "
    "[default: no graph attention]",
)  # fmt: skip
@click.option(
    "--layers", default=2, show_default=True, type=click.IntRange(1), metavar="N",
    help="Number of layers of graph attention; 3 in the paper.",
)  # fmt: skip
@click.option(
    "--residual/--no-residual", default=True, show_default=True,
    help="Add the input of each layer of graph attention to its output; the paper uses the output alone.",
)  # fmt: skip
@click.option(
    "--dropout", default=0.1, show_default=True, type=click.FloatRange(0, 1, max_open=True), metavar="X",
    help="Share of attention weights that graph attention sets to zero in training; 0.7 in the paper.",
)  # fmt: skip
@click.option(
    "--late-fusion/--no-late-fusion", default=None,
    help="Combine the score of the passage alone with its score in context.  [default: on for variants NO_NS and NO_LB_NS, else off]",
)  # fmt: skip
@click.option(
    "--relations", default="", metavar="A,B,…",
    help="Relations of the graph: order, structural, internal, external, their inverses (order_i …), and opening.  "
    "[default: all except opening]",
)  # fmt: skip
@click.option(
    "--neighbours-learn/--no-neighbours-learn", default=False, show_default=True,
    help="Update the encoder by the gradients of neighbouring passages too; this is slower and needs much more memory.",
)  # fmt: skip
@click.option(
    "--epochs", default=3, show_default=True, type=click.IntRange(1), metavar="N", help="Maximum number of passes over all topics."
)
@click.option(
    "--batch",
    default=16,
    show_default=True,
    type=click.IntRange(1),
    metavar="N",
    help="Number of triples (query, relevant and irrelevant passage) per step.",
)
@click.option(
    "--negatives-from", "strategy", default="same_doc", show_default=True, metavar="A+B…",
    help="Sources of irrelevant passages, used in turn: random, same_doc, relevant_docs, shared_codes, mixed, ranked.",
)  # fmt: skip
@click.option(
    "--negatives",
    default=2,
    show_default=True,
    type=click.IntRange(1),
    metavar="N",
    help="Number of irrelevant passages per relevant passage.",
)
@click.option(
    "--draws", default=1, show_default=True, type=click.IntRange(1), metavar="N",
    help="Number of triples per relevant passage in one epoch, each with newly drawn irrelevant passages; 1000 in the paper.",
)  # fmt: skip
@click.option(
    "--ranked-by", default=LEXICAL, show_default=True, metavar="MODEL",
    help="Model whose best results are the irrelevant passages of --negatives-from ranked.",
)  # fmt: skip
@click.option(
    "--in-batch/--no-in-batch",
    default=True,
    show_default=True,
    help="Use the passages of other triples in the batch as irrelevant passages too.",
)
@click.option("--encoder-rate", default=5e-5, show_default=True, metavar="X", help="Learning rate of the encoder; 3e-6 in the paper.")
@click.option(
    "--rate", default=1e-3, show_default=True, metavar="X",
    help="Learning rate of graph attention and late fusion; used only with --variant.",
)  # fmt: skip
@click.option(
    "--schedule", default="linear", show_default=True, type=click.Choice(["linear", "constant"]),
    help="Learning rates rise and then fall linearly (linear), or stay constant (as in the paper).",
)  # fmt: skip
@click.option(
    "--frozen-layers",
    default=0,
    show_default=True,
    type=click.IntRange(0),
    metavar="N",
    help="Number of lower layers of the encoder that are not trained; half of them in the paper.",
)
@click.option("--measure", default="nDCG@10", show_default=True, metavar="NAME", help="Measure by which the best epoch is chosen.")
@click.option(
    "--patience", default=2, show_default=True, type=click.IntRange(1), metavar="N",
    help="Number of epochs without improvement after which training stops.",
)  # fmt: skip
@click.option(
    "--guard", "guards", multiple=True, nargs=3, metavar="INDEX TOPICS QRELS",
    help="Another collection on which the ranker must not become worse. May be given several times.  "
    "[default: self-made topics of INDEX, and texts made of words]",
)  # fmt: skip
@click.option("--no-guard", is_flag=True, help="Train without a guard and keep all trained weights, as in the paper.")
@click.option(
    "--guard-strength", "guard", default=2.0, show_default=True, type=click.FloatRange(0), metavar="W",
    help="Weight of the term that keeps scores on self-made topics and on texts made of words near those of the untrained encoder. "
    "0 leaves it out.",
)  # fmt: skip
@click.option(
    "--guard-loss", default=0.03, show_default=True, type=click.FloatRange(0), metavar="X",
    help="Loss of --measure on guarding topics above which trained weights are interpolated with untrained ones.",
)  # fmt: skip
@click.option(
    "--keep", default=None, type=click.FloatRange(0, 1), metavar="W",
    help="Interpolate all weights between untrained (0) and trained (1).  [default: the largest share that --guard-loss allows]",
)  # fmt: skip
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), metavar="N", help="Seed of all random choices.")
@click.option("--device", default="", metavar="NAME", help="Device: cpu or cuda.  [default: cuda if there is a GPU]")
def command(index: str, topics: str, qrels: str, folder: str, **options: Any) -> int:
    """Fine-tune an encoder on judged topics of an index, for `perikope encode`.

    With --variant, graph attention is trained together with the encoder. The ranker after the epoch with the best score
    on the validation topics is saved. If no epoch improves the score, the untrained ranker is saved.

    A guard limits what the ranker forgets about other texts; training takes about twice as long with it. The report
    says what was gained on validation topics and what was lost on others.

    \b
    Examples:
      perikope train idx train-topics.tsv train-qrels.txt --to my-encoder
      perikope encode idx --encoder my-encoder --name mine
      perikope search idx "magnetic coupling" --model 'colbert(store=mine)'
    \b
      perikope train idx train-topics.tsv train-qrels.txt --to my-ranker --variant NO_LB
      perikope encode idx --encoder my-ranker
      perikope search idx "magnetic coupling" --model hgat
    """
    # The encoder is imported first, because its error says how to install torch.
    from perikope.neural.encoder import Encoder
    from perikope.neural.saved import SavedRanker, save_ranker
    from perikope.neural.training import Trainer, Validation, settings_from

    target = Path(folder)
    from perikope.cli.train_guard import Watch, keep_weights

    settings = settings_from(options | ({"guard": 0.0} if options["no_guard"] else {}))
    ranked_by = _check(target, options, settings)
    encoder = Encoder.load(options["encoder"], options["dimension"], device=options["device"], precision="float32")
    context, fusion = _attention(options, encoder, settings.seed)
    read = [_read(files, ranked_by, with_graphs=context is not None) for files in [(index, topics, qrels), *options["also"]]]
    collections, topics_of_index = [collection for _, collection, _ in read], [judged for _, _, judged in read]
    training = [*topics_of_index]
    training[0], held_out = _held_out(read[0], options, settings.seed)
    ranker, texts, learned = _joined(collections, training, encoder, context, fusion, options)
    guards = [_read(files, "", with_graphs=context is not None) for files in options["guards"]]
    _note_run(target / _RUN, options, topics_of_index, held_out, [judged for _, _, judged in guards])
    watch = None if options["no_guard"] else Watch.of(ranker, _named(index, options, collections), _named_guards(options, guards), settings)
    where = f" of {len(read)} collections" if len(read) > 1 else ""
    summary = f"training on {count(len(learned), 'topic')}{where}, validating on {count(len(held_out), 'topic')}"
    click.echo(f"{summary}; on {encoder.device}", err=True)
    before = {name: value.detach().clone() for name, value in ranker.state_dict().items()}
    curve = _Curve(settings, sum(relevant.size for relevant in learned.relevant))
    # The joined texts begin with the texts of the first index, so the numbers of its passages do not change.
    validation = Validation.of(collections[0].texts, held_out, settings)
    trainer = Trainer(
        ranker, texts, learned, validation, settings, target / _RUN, lambda *step: curve.step(trainer.progress, *step),
        guard=watch.guard if watch else None, collection_of_topic=_collection_of_topic(training),
    )  # fmt: skip
    progress = trainer.run()
    curve.finish(progress)
    if progress.best >= 0 or options["keep"] is not None:
        keep_weights(ranker, before, validation, progress, watch, options["keep"], options["guard_loss"])
    if context is not None:
        _show_attention(context, fusion)
    save_ranker(target, SavedRanker(encoder, context, fusion, settings.heading_path))
    _show_use(index, folder, context is not None)
    return 0


def _check(target: Path, options: Mapping[str, Any], settings: TrainingSettings) -> str:
    """Check all options before any file is read.

    Returns the model that ranks negatives; an empty text if negatives do not come from a ranking.
    """
    from perikope.browse.models import parse_model
    from perikope.core.errors import UsageError, unknown
    from perikope.evaluation.measures import parse_measure
    from perikope.neural.hgat import VARIANTS
    from perikope.neural.saved import CONTEXT_SETTINGS
    from perikope.neural.triples import sources_of

    parse_measure(settings.measure)
    context = click.get_current_context()
    given = {name for name in options if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    if options["variant"] and options["variant"] not in VARIANTS:
        raise unknown("variant", options["variant"], VARIANTS)
    if not options["variant"] and (useless := [f"--{name.replace('_', '-')}" for name in _OF_ATTENTION if name in given]):
        raise UsageError(f"{', '.join(useless)} needs graph attention; choose a variant, such as --variant NO_LB")
    is_ranked = "ranked" in sources_of(settings.strategy)
    if "ranked_by" in given and not is_ranked:
        raise UsageError("--ranked-by needs negatives from a ranking; add --negatives-from ranked, or same_doc+ranked")
    if options["validation_qrels"] and not options["validation_topics"]:
        raise UsageError("--validation-qrels needs --validation-topics; give both, or leave --validation-qrels out")
    others = (*options["also"], *options["guards"])
    indexes = [Path(index).resolve() for index in (context.params["index"], *(files[0] for files in others))]
    if len(set(indexes)) < len(indexes):
        raise UsageError("an index is given twice; give it once, with all its topics in one file and all judgements in another")
    if options["no_guard"] and (useless := [flag for name, flag in _OF_GUARD.items() if name in given]):
        raise UsageError(f"--no-guard and {', '.join(useless)} exclude each other; leave one out")
    _check_target(target)
    start = Path(options["encoder"])
    if start.is_dir() and start.resolve() == target.resolve():
        raise UsageError("--encoder and --to are the same folder; choose another folder for --to")
    if (start / CONTEXT_SETTINGS).is_file():
        click.echo(f"perikope: warning: only the encoder of {printable(str(start))} is used, not its graph attention", err=True)
    if is_ranked:
        parse_model(options["ranked_by"])
    return options["ranked_by"] if is_ranked else ""


def _check_target(target: Path) -> None:
    """Raise `UsageError` if --to is a file, or a folder with files that `perikope train` did not write."""
    from perikope.core.errors import UsageError
    from perikope.neural.saved import RANKER

    if target.exists() and not target.is_dir():
        raise UsageError(f"--to {target} is a file; name a folder")
    if target.is_dir() and any(target.iterdir()) and not ((target / RANKER).is_file() or (target / _RUN).is_dir()):
        raise UsageError(f"--to {target} contains other files; name a new folder, or the folder of an earlier training")


def _attention(options: Mapping[str, Any], encoder: Encoder, seed: int) -> tuple[HGAT | None, LateFusion | None]:
    """Untrained graph attention and late fusion. Each is None if the options do not include it."""
    import torch

    from perikope.neural.graph import RELATIONS
    from perikope.neural.hgat import HGAT, LATE_FUSION, LateFusion

    if not options["variant"]:
        return None, None
    relations = [name.strip() for name in options["relations"].split(",") if name.strip()] or RELATIONS
    torch.manual_seed(seed)
    context = HGAT.variant(
        options["variant"],
        dimension=encoder.dimension,
        layers=options["layers"],
        dropout=options["dropout"],
        residual=options["residual"],
        positions=encoder.settings.passage_tokens,
        relations=list(dict.fromkeys(relations)),
    )
    is_late = options["variant"] in LATE_FUSION if options["late_fusion"] is None else options["late_fusion"]
    return context.to(encoder.device), LateFusion().to(encoder.device) if is_late else None


def _read(files: tuple[str, str, str], ranked_by: str, *, with_graphs: bool) -> tuple[Index, Collection, Topics]:
    """Read a collection: the index, its texts (with graphs if needed), and the topics that have relevant passages."""
    from perikope.index.reader import Snapshot
    from perikope.neural.collection import Collection
    from perikope.neural.preparing import read_judged
    from perikope.search.facade import Index

    folder, topics, qrels = files
    index = Index.open(folder)
    snapshot = Snapshot.open(Path(folder))
    collection = Collection.read(snapshot, with_graphs=with_graphs)
    return index, collection, read_judged(index, collection.texts, topics, qrels, ranked_by=ranked_by, on_problem=_warn)


def _held_out(read: tuple[Index, Collection, Topics], options: Mapping[str, Any], seed: int) -> tuple[Topics, Topics]:
    """The topics of the first index for training, and the topics for validation."""
    from perikope.neural.preparing import read_judged
    from perikope.neural.triples import hold_out

    index, collection, topics = read
    if not options["validation_topics"]:
        return hold_out(topics, 0.1, seed)
    qrels = options["validation_qrels"] or click.get_current_context().params["qrels"]
    return topics, read_judged(index, collection.texts, options["validation_topics"], qrels, on_problem=_warn)


def _joined(
    collections: Sequence[Collection],
    topics: Sequence[Topics],
    encoder: Encoder,
    context: HGAT | None,
    fusion: LateFusion | None,
    options: Mapping[str, Any],
) -> tuple[TrainableRanker, Texts, Topics]:
    """The ranker to train, the joined texts of all collections, and their joined topics."""
    from perikope.neural.collection import join_graphs
    from perikope.neural.training import ContextRanker, TrainableRanker
    from perikope.neural.triples import join_texts, join_topics

    texts = join_texts([collection.texts for collection in collections])
    learned = join_topics([collection.texts for collection in collections], topics)
    written = texts.written(heading_path=options["heading_path"])
    if context is None:
        return TrainableRanker(encoder, written), texts, learned
    graphs = join_graphs(collections)
    ranker = ContextRanker(encoder, written, texts, graphs, context, fusion, neighbours_learn=options["neighbours_learn"])
    return ranker, texts, learned


def _named(index: str, options: Mapping[str, Any], collections: Sequence[Collection]) -> dict[str, Collection]:
    """The collections that are trained on, by the path of their index as it was given."""
    return dict(zip([index, *(files[0] for files in options["also"])], collections, strict=True))


def _named_guards(options: Mapping[str, Any], read: Sequence[tuple[Index, Collection, Topics]]) -> dict[str, tuple[Collection, Topics]]:
    """The collections and topics of --guard, by the path of their index as it was given."""
    return {files[0]: (collection, judged) for files, (_, collection, judged) in zip(options["guards"], read, strict=True)}


def _collection_of_topic(topics: Sequence[Topics]) -> Integers | None:
    """The number of each topic's collection (topics,), in the order of the joined topics; None for one collection."""
    import numpy as np

    return np.repeat(np.arange(len(topics)), [len(judged) for judged in topics]) if len(topics) > 1 else None


def _note_run(folder: Path, options: Mapping[str, Any], topics: Sequence[Topics], held_out: Topics, guards: Sequence[Topics]) -> None:
    """Record the encoder, attention and topics of a training, and the topics of its guards.

    Raises `UsageError` if the folder contains a training with other settings.
    """
    from perikope.core.errors import InputError, UsageError
    from perikope.core.reading import read_saved_object
    from perikope.neural.training import PROGRESS

    names = ("encoder", "dimension", "variant", *(_OF_ATTENTION if options["variant"] else ()), "ranked_by")
    facts = {name: options[name] for name in names} | {"topics": _digest(topics)}
    if options["validation_topics"]:
        facts["validation_topics"] = _digest([held_out])
    if guards:
        facts["guarding_topics"] = _digest(guards)
    path = folder / _MADE_WITH
    if (folder / PROGRESS).is_file() and path.is_file():
        try:
            known = read_saved_object(path)
        except ValueError:
            raise InputError(f"is damaged; remove {folder}, or choose another folder", path=path) from None
        differing = [name for name in {**known, **facts} if known.get(name) != facts.get(name)]
        if differing:
            others = ", ".join(name if name.endswith("topics") else f"{name} {known.get(name)!r}" for name in differing)
            raise UsageError(f"{folder} contains a training with other settings ({others}); use these settings, or choose another folder")
    make_folder(folder)
    with replacing(path) as file:
        file.write(json.dumps(facts, indent=1))


def _digest(topics: Sequence[Topics]) -> str:
    """A hash of the queries and their relevant passages, in hexadecimal digits."""
    content = [[*judged.qids, *judged.queries, *(numbers.tolist() for numbers in judged.relevant)] for judged in topics]
    return hashlib.blake2b(json.dumps(content).encode(), digest_size=8).hexdigest()


class _Curve:
    """Prints the progress of training: one line per epoch, and the current step on standard error."""

    def __init__(self, settings: TrainingSettings, triples: int) -> None:
        self._settings, self._steps = settings, -(-triples // settings.batch)
        self._rows = -1
        self._watched, self._last = sys.stderr.isatty(), time.monotonic()

    def step(self, progress: Progress, epoch: int, step: int, loss: float) -> None:
        """Print new epochs and the loss of a finished step."""
        self._tell(progress)
        now, line = time.monotonic(), f"epoch {epoch + 1}, step {step + 1} of {self._steps}: loss {loss:.4f}"
        if self._watched:
            click.echo(f"\r\x1b[K{line}", nl=False, err=True)
        elif now - self._last > _SECONDS:
            self._last = now
            click.echo(line, err=True)

    def finish(self, progress: Progress) -> None:
        """Print the remaining epochs, and which epoch is the best."""
        self._tell(progress)
        if progress.best < 0:
            click.echo("no epoch is better than the untrained ranker, which is saved")
        else:
            click.echo(f"best: epoch {progress.best + 1} of {len(progress.epochs)}")

    def _tell(self, progress: Progress) -> None:
        new = progress.epochs[max(self._rows, 0) :]
        if self._rows >= 0 and not new:
            return
        if self._watched:
            click.echo("\r\x1b[K", nl=False, err=True)
        if self._rows < 0:
            click.echo(f"epoch    loss  seconds  {self._settings.measure}")
            click.echo(f"    -       -        -  {progress.untrained:.4f}")
        for epoch in new:
            click.echo(f"{epoch.number + 1:5}  {epoch.loss:6.4f}  {epoch.seconds:7.0f}  {epoch.measure:.4f}")
        self._rows = len(progress.epochs)


def _show_attention(context: HGAT, fusion: LateFusion | None) -> None:
    """Print the learned weights of the attention: the share of each relation per layer, λ and α."""
    shares, lambdas = context.importance(), context.lambdas
    names = list(dict.fromkeys(name for layer in shares for name in layer))
    click.echo("relation, percent" + "".join(f"  layer {number}" for number in range(1, 1 + len(shares))))
    for name in names:
        click.echo(name.ljust(17) + "".join(f"{100 * layer[name]:9.1f}" if name in layer else "        -" for layer in shares))
    if any(lam is not None for lam in lambdas):
        click.echo("λ".ljust(17) + "".join("        -" if lam is None else f"{lam:9.3f}" for lam in lambdas))
    if fusion is not None:
        click.echo(f"α, the weight of the context in a score: {float(fusion.alpha.detach().clamp(0, 1)):.3f}")


def _show_use(index: str, folder: str, has_context: bool) -> None:
    index_path, ranker = (printable(shlex.quote(path)) for path in (index, folder))
    name, model = ("", "hgat") if has_context else (" --name mine", "'colbert(store=mine)'")
    click.echo(f"saved in {printable(folder)}; to use it:")
    click.echo(f"  perikope encode {index_path} --encoder {ranker}{name}")
    click.echo(f'  perikope search {index_path} "…" --model {model}')


def _warn(problem: str) -> None:
    click.echo(f"perikope: warning: {printable(problem)}", err=True)
