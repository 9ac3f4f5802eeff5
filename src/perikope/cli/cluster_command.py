"""`perikope cluster`: make a cluster, which divides documents among shards, or change it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeVar

import click

from perikope.cli.options import GroupedCommand, size_option
from perikope.cli.output import count, printable, show_problems
from perikope.cli.run_command import command as run_command
from perikope.cli.search_command import command as search_command
from perikope.cli.serve_command import named_location, read_settings, server_settings
from perikope.cli.serve_command import serve as serve_indexes
from perikope.cli.spreading import on_ray_module
from perikope.cluster.missing import DEADLINE
from perikope.index.duplicates import DEFAULT_DUPLICATES, DUPLICATES

if TYPE_CHECKING:
    from perikope.cluster.building import ClusterReport

F = TypeVar("F", bound=Callable[..., Any])

wait_option = click.option(
    "--wait",
    default=0.0,
    type=click.FloatRange(0),
    metavar="SECONDS",
    help="Seconds to wait if another process is changing the cluster.  [default: 0]",
)
address_option = click.option(
    "--address",
    default="auto",
    show_default=True,
    metavar="ADDRESS",
    help="Address of the Ray cluster, as host:port; auto finds the local one.",
)
name_option = click.option(
    "--name", default="default", show_default=True, metavar="NAME", help="Name of the started cluster, if there are several."
)
deadline_option = click.option(
    "--deadline",
    default=DEADLINE,
    type=click.FloatRange(0, min_open=True),
    show_default=True,
    metavar="SECONDS",
    help="Seconds until a shard that does not answer is given up.",
)
partial_option = click.option(
    "--partial", is_flag=True, help="Leave out shards that do not answer, and say so. Without it, a missing shard is an error."
)
shards_option = click.option(
    "--shards", required=True, type=click.IntRange(1, 1000), metavar="N", help="Number of shards; it cannot be changed later."
)


spread_option = click.option(
    "--address",
    metavar="ADDRESS",
    help="Do the work on the Ray cluster at this address, as host:port; auto finds the local one. All nodes must see the same files under "
    "the same paths, and --memory is for one task.  [default: this machine only]",
)


def reading_options(command: F) -> F:
    """Add the options that say how files are read."""
    options = (
        click.option("--format", default="auto", show_default=True, metavar="NAME", help="Format of the files; see `perikope formats`."),
        click.option(
            "--language", metavar="CODE", help="Language of documents that do not state it.  [default: en, or that of the cluster]"
        ),
        click.option("--segment", default="markup", show_default=True, metavar="HOW", help="How passages are cut, as in `perikope index`."),
        click.option(
            "--duplicates",
            type=click.Choice(DUPLICATES),
            default=DEFAULT_DUPLICATES,
            show_default=True,
            help="If several documents have the same id: add the first and name the others, or stop with an error.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.group(name="cluster")
def command() -> None:
    """Make a cluster, an index that is divided among shards, or change one.

    A cluster is searched as an index is, and gives the same answers.

    \b
    Example:
      perikope cluster build docs/ --to cluster --shards 4
      perikope search cluster "magnetic pump"
    """


@command.command(name="build")
@click.argument("paths", nargs=-1, required=True, metavar="PATH…")
@click.option(
    "--to", "folder", required=True, metavar="FOLDER|URL", help="New or empty folder of the cluster, or its address in an object store."
)
@shards_option
@reading_options
@click.option("--stemmer", metavar="NAME", help="Stemmer: snowball, porter or none.  [default: snowball]")
@click.option("--stopwords", metavar="LIST", help="Stop words: default, none, or a file of words.  [default: default]")
@size_option
@wait_option
@spread_option
def build(paths: tuple[str, ...], folder: str, shards: int, address: str | None, **options: Any) -> int:
    """Make a cluster from files, folders and archives.

    If the command is stopped, repeat it: it continues where it was. With --address, files are read and indexed on all
    machines of a Ray cluster.

    \b
    Examples:
      perikope cluster build docs/ --to cluster --shards 4
      perikope cluster build /shared/docs --to /shared/cluster --shards 4 --address 127.0.0.1:6379
    """
    from perikope.build.indexing import BuildOptions

    building, made = _building(address), BuildOptions(**options)
    return _show(
        folder,
        lambda: _built(
            folder,
            {"paths": paths, "shards": shards, "options": asdict(made)},
            lambda place: building.build_cluster(place, paths, shards, made),
            made.wait,
        ),
    )


@command.command(name="from")
@click.argument("index", metavar="INDEX")
@click.option(
    "--to", "folder", required=True, metavar="FOLDER|URL", help="New or empty folder of the cluster, or its address in an object store."
)
@shards_option
@size_option
def from_index(index: str, folder: str, shards: int, memory: int) -> int:
    """Divide an existing index among shards. The index itself does not change.

    Learned tables are copied. Vectors are not.

    \b
    Example:
      perikope cluster from idx --to cluster --shards 4
    """
    from perikope.cluster.building import cluster_from

    return _show(
        folder, lambda: _built(folder, {"index": index, "shards": shards}, lambda place: cluster_from(index, place, shards, memory=memory))
    )


@command.command(name="append")
@click.argument("cluster", metavar="INDEX")
@click.argument("paths", nargs=-1, required=True, metavar="PATH…")
@click.option("--replace", is_flag=True, help="Replace documents of the cluster that have the same id.")
@reading_options
@size_option
@wait_option
@spread_option
def append(cluster: str, paths: tuple[str, ...], address: str | None, **options: Any) -> int:
    """Add files, folders and archives to a cluster, in one commit.

    \b
    Example:
      perikope cluster append cluster more.jsonl.gz
    """
    from perikope.build.indexing import BuildOptions
    from perikope.cluster.storage import changed

    building, made = _building(address), BuildOptions(append=not options["replace"], **options)
    return _show(cluster, lambda: changed(cluster, lambda place: building.append(place, paths, made), wait=made.wait))


@command.command(name="delete")
@click.argument("cluster", metavar="INDEX")
@click.argument("ids", nargs=-1, required=True, metavar="ID…")
@wait_option
def delete(cluster: str, ids: tuple[str, ...], wait: float) -> int:
    """Delete documents of a cluster by id, in one commit.

    \b
    Example:
      perikope cluster delete cluster report-7 report-8
    """
    from perikope.cluster.building import delete
    from perikope.cluster.storage import changed

    return _show(cluster, lambda: changed(cluster, lambda place: delete(place, ids, wait=wait), wait=wait))


@command.command(name="compact")
@click.argument("cluster", metavar="INDEX")
@size_option
@wait_option
@spread_option
def compact(cluster: str, memory: int, wait: float, address: str | None) -> int:
    """Merge the segments of each shard, and remove deleted documents from the disk.

    \b
    Example:
      perikope cluster compact cluster
    """
    from perikope.cluster.storage import changed

    building = _building(address)
    return _show(cluster, lambda: changed(cluster, lambda place: building.compact(place, memory=memory, wait=wait), wait=wait))


@command.command(name="start")
@click.argument("cluster", metavar="INDEX")
@click.option(
    "--replicas", type=click.IntRange(1, 100), default=2, show_default=True, metavar="N", help="Number of replicas of each shard."
)
@address_option
@name_option
def start(cluster: str, replicas: int, address: str, name: str) -> int:
    """Start the shards of a cluster as actors in a running Ray cluster.

    All nodes must see the folder under the same path. The actors live until `perikope cluster stop`.

    \b
    Example:
      perikope cluster start /shared/cluster --replicas 2 --address 127.0.0.1:6379
    """
    on_ray = on_ray_module()
    on_ray.join_ray(address)
    started = on_ray.start(cluster, replicas=replicas, name=name)
    shards = len(started.snapshot.manifest.shards)
    click.echo(f"{printable(cluster)}: {count(shards, 'shard')} with {count(replicas, 'replica')} each, {len(started)} documents")
    click.echo(f'search it: perikope cluster search {printable(cluster)} "your words" --address {address}')
    return 0


@address_option
@name_option
@deadline_option
@partial_option
def _search(address: str, name: str, partial: bool, deadline: float, **given: Any) -> int:
    """Search a cluster that runs on Ray. All options of `perikope search` have the same meaning.

    If a shard does not answer, the command fails. With --partial, it searches the others, warns, and exits with 1.

    \b
    Examples:
      perikope cluster search /shared/cluster "magnetic pump" --address 127.0.0.1:6379
      perikope cluster search /shared/cluster "magnetic pump" --filter year>2010 --json --partial
    """
    return _run_on(search_command, address, name, given, deadline=deadline, partial=partial)


@address_option
@click.option("--cluster", "name", default="default", show_default=True, metavar="NAME", help="Name of the started cluster.")
@deadline_option
def _run(address: str, name: str, deadline: float, **given: Any) -> int:
    """Rank passages for each topic with a cluster that runs on Ray, and write a run.

    All options of `perikope run` have the same meaning, and the run has the same bytes. If a shard does not answer, no
    run is written.

    \b
    Example:
      perikope cluster run /shared/cluster topics.tsv --model qsf_v --out qsf_v.run --address 127.0.0.1:6379
    """
    return _run_on(run_command, address, name, given, deadline=deadline)


def _run_on(original: click.Command, address: str, name: str, given: dict[str, Any], **how: Any) -> int:
    """Run a command that searches an index on a started cluster."""
    from perikope.cli.opening import opened_as

    on_ray = on_ray_module()
    on_ray.join_ray(address)
    assert original.callback is not None
    with opened_as(given["index"], on_ray.find(given["index"], name=name, **how)):
        status: int = original.callback(**given)
    return status


def _like(original: GroupedCommand, function: Callable[..., int]) -> click.Command:
    """A command with the parameters of another one, without those about servers, and those of the function."""
    added = click.command()(function)
    own = [parameter for parameter in original.params if parameter.name != "no_server"]
    groups = {**original.groups, "Cluster": [parameter.name or "" for parameter in added.params]}
    return GroupedCommand(name=original.name, callback=added.callback, help=added.help, groups=groups, params=[*own, *added.params])


command.add_command(_like(search_command, _search))
command.add_command(_like(run_command, _run))


@command.command(name="serve")
@click.argument("clusters", metavar="INDEX…", nargs=-1, required=True)
@address_option
@name_option
@partial_option
@server_settings
@click.option("--open/--no-open", "opens", default=None, help="Open the page of the server in a browser.")
def serve(clusters: tuple[str, ...], address: str, name: str, partial: bool, opens: bool | None, **given: Any) -> int:
    """Serve clusters that run on Ray over HTTP, with the operations and the page of `perikope serve`.

    NAME=INDEX gives a cluster another name in addresses. Requests only read. A commit is loaded by the replicas first,
    then all requests see it. A shard that has not answered after half of --timeout is missing: the answer is an error,
    or with --partial says so. Start the command on several machines, behind a proxy, to survive the loss of one.

    \b
    Example:
      perikope cluster serve /shared/cluster --address 127.0.0.1:6379 --port 8321
    """
    import tempfile
    from pathlib import Path

    from perikope.cluster.locations import is_url
    from perikope.cluster.storage import load_from

    settings = read_settings({**given, "commands": False})
    on_ray_module()  # a missing package is reported now
    from perikope.cluster.serving import ClusterOpener, copy_manifest
    from perikope.server.served import PreparedIndex, ServedIndexes

    with tempfile.TemporaryDirectory(prefix="perikope-commits-") as kept:
        by_name: dict[str, PreparedIndex] = {}
        locations = {}
        for written in clusters:
            index, location = named_location(written, list(by_name))
            load_from(location)  # a cluster that cannot be read is reported now
            folder = Path(tempfile.mkdtemp(dir=kept)) if is_url(location) else Path(location)
            copy_manifest(location, folder)
            locations[index], by_name[index] = location, PreparedIndex(index, folder, states=Path(kept) / "states")
        served = ServedIndexes(by_name)
        opener = ClusterOpener(
            locations, served.folders, Path(kept) / "states", address, name, min(DEADLINE, settings.timeout / 2), partial
        )
        serve_indexes(settings, lambda: served, opens, opener)
    return 0


@command.command(name="stop")
@address_option
@name_option
def stop(address: str, name: str) -> int:
    """End the actors that `perikope cluster start` has started. The folder of the cluster does not change.

    \b
    Example:
      perikope cluster stop --address 127.0.0.1:6379
    """
    on_ray = on_ray_module()
    on_ray.join_ray(address)
    click.echo(f"{count(on_ray.stop(name), 'actor')} ended")
    return 0


def _built(place: str, asked: dict[str, Any], make: Callable[[str], ClusterReport], wait: float = 0.0) -> ClusterReport:
    """Make a cluster in a folder, or in an object store."""
    from perikope.cluster.locations import is_url
    from perikope.cluster.storage import StoredCluster

    return StoredCluster(place).build(make, asked, wait=wait) if is_url(place) else make(place)


def _building(address: str | None) -> Any:
    """What builds and changes clusters: on this machine, or with the tasks of the Ray cluster at an address."""
    from perikope.cluster import building

    if address is None:
        return building
    on_ray_module().join_ray(address)
    from perikope.cluster.ray_workers import RayWorkers
    from perikope.cluster.spreading import SpreadBuilding

    return SpreadBuilding(RayWorkers())


def _show(folder: str, change: Callable[[], ClusterReport]) -> int:
    """Make a change, print its result, and return the exit code."""
    from perikope.index.duplicates import named

    started = time.perf_counter()
    report = change()
    contents = f"{count(report.documents, 'document')} with {count(report.passages, 'passage')} in {count(report.shards, 'shard')}"
    continued = f" (continued after {count(report.continued, 'document')})" if report.continued else ""
    click.echo(f"{printable(folder)}: {contents}, in {time.perf_counter() - started:.1f} s{continued}")
    if report.duplicates:
        click.echo(f"{count(len(report.duplicates), 'document')} left out, because an earlier document has the same id:", err=True)
        for line in named(report.duplicates):
            click.echo(f"  {printable(line)}", err=True)
    show_problems("could not be read, or not completely", [str(problem) for problem in report.skipped])
    return 1 if report.skipped else 0
