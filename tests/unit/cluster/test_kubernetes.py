"""The Kubernetes example: it fits the schemas, and shows what the documentation promises about it.

The kinds of Kubernetes and the templates of pods are checked by kubernetes-validate, if it is installed. KubeRay's own
fields are few; they are listed here from its Go types of `ray.io/v1`.
"""

from pathlib import Path

import pytest
import yaml

MANIFEST = Path(__file__).parents[3] / "deploy" / "kubernetes.yaml"
GROUP = {"rayStartParams", "template"}
HEAD = GROUP | {"serviceType", "headService", "enableIngress"}
WORKERS = GROUP | {"groupName", "replicas", "minReplicas", "maxReplicas", "numOfHosts", "scaleStrategy"}
CLUSTER = {"headGroupSpec", "workerGroupSpecs", "rayVersion", "enableInTreeAutoscaling", "autoscalerOptions", "headServiceAnnotations"}


@pytest.fixture(scope="module")
def documents():
    return {document["kind"]: document for document in yaml.safe_load_all(MANIFEST.read_text())}


@pytest.fixture(scope="module")
def groups(documents):
    spec = documents["RayCluster"]["spec"]
    return {"head": spec["headGroupSpec"], **{group["groupName"]: group for group in spec["workerGroupSpecs"]}}


def containers(groups):
    return {name: group["template"]["spec"]["containers"][0] for name, group in groups.items()}


def test_kuberay_knows_all_fields_of_the_cluster(documents, groups):
    spec = documents["RayCluster"]["spec"]
    assert documents["RayCluster"]["apiVersion"] == "ray.io/v1"
    assert set(spec) <= CLUSTER
    assert {"headGroupSpec", "workerGroupSpecs"} <= set(spec)
    for name, group in groups.items():
        assert GROUP <= set(group) <= (HEAD if name == "head" else WORKERS)
        assert all(isinstance(value, str) for value in group["rayStartParams"].values()), "they are a map of strings"
        if name != "head":
            assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]


def test_kubernetes_accepts_what_is_its_own(documents, groups):
    kubernetes_validate = pytest.importorskip(
        "kubernetes_validate", reason="the Kubernetes example is checked in part: pip install kubernetes-validate"
    )
    version = kubernetes_validate.latest_version()
    pods = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": group["template"]["spec"]} for name, group in groups.items()
    ]
    own = [document for kind, document in documents.items() if kind != "RayCluster"]
    assert {document["kind"] for document in own} == {"Service", "NetworkPolicy", "PersistentVolumeClaim"}
    for document in [*own, *pods]:
        kubernetes_validate.validate(document, version, strict=True)
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate({**pods[0], "spec": {**pods[0]["spec"], "volume": []}}, version, strict=True)


def test_every_process_of_ray_has_the_token_and_none_shows_a_dashboard(documents, groups):
    for container in containers(groups).values():
        variables = {variable["name"]: variable for variable in container["env"]}
        assert variables["RAY_AUTH_MODE"]["value"] == "token"
        assert "secretKeyRef" in variables["RAY_AUTH_TOKEN"]["valueFrom"]
    head = groups["head"]
    assert (head["rayStartParams"]["include-dashboard"], head["enableIngress"]) == ("false", False)
    assert {port["containerPort"] for port in containers(groups)["head"]["ports"]} == {6379}
    own, everybody = documents["NetworkPolicy"]["spec"]["ingress"]
    assert own["from"] == [{"podSelector": {"matchLabels": {"ray.io/cluster": documents["RayCluster"]["metadata"]["name"]}}}]
    assert everybody == {"ports": [{"port": 8321, "protocol": "TCP"}]}


def test_the_servers_are_ready_when_they_can_search(documents, groups):
    server = containers(groups)["server"]
    assert server["readinessProbe"]["httpGet"]["path"] == "/ready"
    assert [port["containerPort"] for port in server["ports"]] == [8321]
    assert all({"readinessProbe", "livenessProbe"} <= set(container) for container in containers(groups).values())
    service = documents["Service"]["spec"]
    assert service["selector"] == {"ray.io/cluster": "perikope", "ray.io/group": "server"}
    assert service["ports"][0]["targetPort"] == server["ports"][0]["name"]


def test_no_shard_is_placed_beside_the_head_or_a_server(groups):
    cpus = {name: int(group["rayStartParams"]["num-cpus"]) for name, group in groups.items()}
    assert cpus["head"] == cpus["server"] == 0 < cpus["shards"]
    assert "podAntiAffinity" in groups["shards"]["template"]["spec"]["affinity"]
