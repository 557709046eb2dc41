#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""deploy_files.py SOURCE PURLIN [GO_RENDERER]: checks the files of deploy/.

Manifests of Kubernetes and of compose have known keys of known types only; each option of purlin in
them, in units and in scripts exists; each metric in the dashboard and the rules is one that the code has.
The Helm chart is rendered with several values and checked as the manifests are. With its default values it is
the plain manifests. GO_RENDERER (helm_template.go, compiled) must render the same.
"""
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

from helm_template import Chart

SOURCE, PURLIN = Path(sys.argv[1]), sys.argv[2]
GO_RENDERER = sys.argv[3] if len(sys.argv) > 3 else ""
DEPLOY = SOURCE / "deploy"
FAULTS = []

# A schema: a type, [schema] for a list, {key: schema} for a mapping; "key?" may be absent, "*" is any key.
META = {"name": str, "namespace?": str, "labels?": {"*": str}}
QUANTITIES = {"*": str}
SECURITY = {"runAsNonRoot?": bool, "runAsUser?": int, "runAsGroup?": int, "fsGroup?": int,
            "seccompProfile?": {"type": str}}
PROBE = {"httpGet": {"path": str, "port": (str, int), "scheme?": str}, "periodSeconds?": int, "failureThreshold?": int}
CONTAINER = {
    "name": str, "image": str, "imagePullPolicy?": str, "args": [str],
    "env?": [{"name": str, "value?": str, "valueFrom?": {"fieldRef?": {"fieldPath": str}, "secretKeyRef?": {"name": str, "key": str}}}],
    "ports?": [{"name": str, "containerPort": int}],
    "readinessProbe?": PROBE, "livenessProbe?": PROBE,
    "resources": {"requests": QUANTITIES, "limits": QUANTITIES},
    "securityContext": {"runAsUser?": int, "runAsNonRoot?": bool, "allowPrivilegeEscalation": bool,
                        "readOnlyRootFilesystem?": bool, "capabilities": {"drop": [str], "add?": [str]}},
    "volumeMounts": [{"name": str, "mountPath": str, "readOnly?": bool}],
}
VOLUME = {"name": str, "emptyDir?": {}, "hostPath?": {"path": str, "type?": str},
          "persistentVolumeClaim?": {"claimName": str},
          "secret?": {"secretName": str, "defaultMode": int, "items": [{"key": str, "path": str}]}}
POD = {"automountServiceAccountToken": bool, "imagePullSecrets?": [{"name": str}], "hostPID?": bool, "restartPolicy?": str,
       "terminationGracePeriodSeconds?": int, "nodeSelector?": {"*": str},
       "tolerations?": [{"operator": str, "key?": str}], "securityContext?": SECURITY,
       "containers": [CONTAINER], "volumes": [VOLUME]}
TEMPLATE = {"metadata": {"labels": {"*": str}, "annotations?": {"*": str}}, "spec": POD}
SELECTOR = {"matchLabels": {"*": str}}
KINDS = {
    "Namespace": ("v1", {"metadata": META}),
    "Service": ("v1", {"metadata": META, "spec": {"selector": {"*": str},
                "ports": [{"name": str, "port": int, "targetPort": (str, int)}]}}),
    "PersistentVolumeClaim": ("v1", {"metadata": META, "spec": {"accessModes": [str], "storageClassName?": str,
                              "resources": {"requests": QUANTITIES}}}),
    "Deployment": ("apps/v1", {"metadata": META, "spec": {"replicas": int, "strategy": {"type": str},
                   "selector": SELECTOR, "template": TEMPLATE}}),
    "DaemonSet": ("apps/v1", {"metadata": META, "spec": {"selector": SELECTOR, "template": TEMPLATE,
                  "updateStrategy": {"type": str, "rollingUpdate": {"maxUnavailable": (str, int)}}}}),
    "Job": ("batch/v1", {"metadata": META, "spec": {"parallelism": int, "completions": int,
            "completionMode": str, "backoffLimit": int, "ttlSecondsAfterFinished": int,
            "template": TEMPLATE}}),
    "Kustomization": ("kustomize.config.k8s.io/v1beta1", {"namespace": str, "resources": [str],
                      "images": [{"name": str, "newName": str, "newTag": str}]}),
}
RULES = {"groups": [{"name": str, "rules": [{"alert": str, "expr": str, "for?": str,
                                             "labels": {"severity": str}, "annotations": {"*": str}}]}]}
COMPOSE = {"services": {"*": {"image": str, "command?": [str], "ports?": [str], "read_only?": bool,
                              "tmpfs?": [str], "network_mode?": str, "volumes?": [str]}}}


def fault(where, text):
    FAULTS.append(f"{where}: {text}")


def check(value, schema, where):
    """Strict: no key that the schema lacks, none missing, and types."""
    if isinstance(schema, dict):
        if not isinstance(value, dict):
            return fault(where, f"{type(value).__name__} in place of a mapping")
        known = {key.rstrip("?"): key for key in schema}
        for key, item in value.items():
            if key in known or "*" in known:
                check(item, schema[known.get(key, "*")], f"{where}.{key}")
            else:
                fault(where, f"unknown key '{key}'")
        for key in schema:
            if not key.endswith("?") and key != "*" and key not in value:
                fault(where, f"no '{key}'")
    elif isinstance(schema, list):
        if not isinstance(value, list) or not value:
            return fault(where, "an empty list, or none")
        for index, item in enumerate(value):
            check(item, schema[0], f"{where}[{index}]")
    elif not isinstance(value, schema) or (schema is int and isinstance(value, bool)):
        fault(where, f"{value!r} is of the wrong type")
    return None


def check_pod(template, selector, where):
    labels = template["metadata"]["labels"]
    if selector and any(labels.get(key) != value for key, value in selector["matchLabels"].items()):
        fault(where, "the selector does not match the template")
    volumes = [volume["name"] for volume in template["spec"]["volumes"]]
    for container in template["spec"]["containers"]:
        mounts = [mount["name"] for mount in container["volumeMounts"]]
        if sorted(mounts) != sorted(volumes):
            fault(where, f"volumes {volumes}, mounts {mounts}")
        check_options(container["args"], f"{where} {container['name']}")


HELP = {}


def check_options(words, where):
    """['serve', '--listen=…']: options of that verb."""
    verb = words[0]
    if verb not in HELP:
        HELP[verb] = subprocess.run([PURLIN, verb, "--help"], capture_output=True, text=True, check=False).stdout
    for word in words[1:]:
        option = re.match(r"--[a-z][a-z-]*", word)
        if option and not re.search(re.escape(option.group()) + r"(?![a-z-])", HELP[verb]):
            fault(where, f"`purlin {verb}` has no {option.group()}")


def check_manifests():
    folder = DEPLOY / "kubernetes"
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    for name in kustomization["resources"]:
        if not (folder / name).is_file():
            fault(folder / "kustomization.yaml", f"no file {name}")
    for file in sorted(folder.glob("*.yaml")):
        check_documents(file.name, file.read_text())


def check_documents(name, text):
    for document in yaml.safe_load_all(text):
        if document is None:
            continue
        kind = document.pop("kind")
        where = f"{name} {kind}"
        if kind not in KINDS:
            fault(where, "unknown kind")
            continue
        version, schema = KINDS[kind]
        if document.pop("apiVersion") != version:
            fault(where, f"apiVersion is not {version}")
        before = len(FAULTS)
        check(document, schema, where)
        if len(FAULTS) == before and "template" in document.get("spec", {}):
            check_pod(document["spec"]["template"], document["spec"].get("selector"), where)


EVERYTHING = {
    "image": {"tag": "v1"}, "imagePullSecrets": [{"name": "registry"}],
    "server": {"storageClass": "fast", "store": "http://purlin@db:8123/purlin", "raws": "s3://bucket/purlin",
               "tlsSecret": "purlin-tls", "extraArgs": ["--alerts=/etc/purlin/alerts.toml"],
               "env": [{"name": "PURLIN_CLICKHOUSE_PASSWORD",
                        "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}}],
               "annotations": {"prometheus.io/scrape": "true"}},
    "collector": {"nodeSelector": {}, "tolerations": [], "extraArgs": ["--stop-above=2%"]},
    "tune": {"enabled": True},
}
VALUES = [{}, EVERYTHING, {"server": {"enabled": False}, "collector": {"server": "https://fleet:8717"}}]


def check_chart():
    folder = DEPLOY / "helm/purlin"
    facts = yaml.safe_load((folder / "Chart.yaml").read_text())
    check(facts, {"apiVersion": str, "name": str, "description": str, "type": str, "version": str, "appVersion": str,
                  "kubeVersion?": str, "keywords?": [str]}, "Chart.yaml")
    if facts["apiVersion"] != "v2" or not re.fullmatch(r"\d+\.\d+\.\d+", facts["version"]):
        fault("Chart.yaml", "apiVersion or version")
    templates = "".join(file.read_text() for file in (folder / "templates").iterdir())
    used = set(re.findall(r"\.Values\.([\w.]+)", templates))
    known = set(leaves(yaml.safe_load((folder / "values.yaml").read_text()), used))
    for name in sorted(known ^ used):
        fault("values.yaml", f"{name} is in " + ("no template" if name in known else "the templates only"))
    for values in VALUES:
        chart = Chart(folder, values)
        rendered = chart.render()
        for name, text in rendered.items():
            if name.endswith(".yaml"):
                check_documents(f"helm {name}", text)
        if GO_RENDERER:
            compare_with_go(folder, values, rendered)
    plain = [document for file in ("server.yaml", "collector.yaml", "tune-job.yaml")
             for document in yaml.safe_load_all((DEPLOY / "kubernetes" / file).read_text())]
    ours = [document for text in Chart(folder, {"tune": {"enabled": True}}).render().values() if "kind:" in text
            for document in yaml.safe_load_all(text)]
    for kind in sorted({document["kind"] for document in plain}):
        (one,), (other,) = ([plainly(d) for d in all_of if d["kind"] == kind] for all_of in (plain, ours))
        if one != other:
            fault(f"helm {kind}", f"differs from deploy/kubernetes:\n{one}\n{other}")


def leaves(values, used, prefix=""):
    for key, value in values.items():
        path = f"{prefix}{key}"
        if isinstance(value, dict) and path not in used:
            yield from leaves(value, used, path + ".")
        else:
            yield path


def plainly(document):
    """Without what differs between a chart and a plain manifest: labels, image, options with their default."""
    document = json.loads(json.dumps(document))
    document["metadata"].pop("labels", None)
    for container in document["spec"].get("template", {}).get("spec", {}).get("containers", []):
        container["image"] = "purlin"
        container.pop("imagePullPolicy", None)
        for probe in ("readinessProbe", "livenessProbe"):
            container.get(probe, {}).get("httpGet", {}).pop("scheme", None)
        container["args"] = [word for word in container["args"]
                             if not re.match(r"--(keep|keep-raws|period|raw-per-hour)=", word)]
    return document


def compare_with_go(folder, values, rendered):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(values, file)
        file.flush()
        run = subprocess.run([GO_RENDERER, str(folder), file.name], capture_output=True, text=True, check=False)
    if run.returncode != 0:
        return fault("helm_template.go", run.stderr)
    parts = re.split(r"^--- (\S+\.(?:yaml|txt))\n", run.stdout, flags=re.M)[1:]
    by_go = dict(zip(parts[::2], parts[1::2]))
    for name, text in rendered.items():
        same = (list(yaml.safe_load_all(text)) == list(yaml.safe_load_all(by_go[name])) if name.endswith(".yaml")
                else text.split() == by_go[name].split())
        if not same:
            fault(f"helm {name}", f"Go renders it differently:\n{by_go[name]}")
    return None


def check_commands():
    for file in [*sorted((DEPLOY / "systemd").glob("*.service")), DEPLOY / "slurm/tune-backlog.sbatch"]:
        text = file.read_text().replace("\\\n", " ")
        for match in re.finditer(r"^(?:ExecStart=\S*/|exec )purlin (.*)$", text, re.M):
            check_options(match.group(1).split(), file.name)
    compose = yaml.safe_load((DEPLOY / "compose/compose.yaml").read_text())
    check(compose, COMPOSE, "compose.yaml")
    server = compose["services"]["purlin"]
    check_options(server["command"], "compose.yaml")
    if "--listen" not in server["command"] and any(port.endswith(":8717") for port in server["ports"]):
        fault("compose.yaml", "port 8717 is published, and the server listens on the loopback")
    for service in compose["services"].values():
        for volume in service.get("volumes", []):
            if not (DEPLOY / "compose" / volume.split(":")[0]).resolve().is_file():
                fault("compose.yaml", f"no file {volume.split(':')[0]}")
    for file in (DEPLOY / "compose").glob("*.yml"):
        yaml.safe_load(file.read_text())


def check_container():
    """What the binary opens at run time is in the image: a slim base has no libcurl."""
    text = (DEPLOY / "container/Containerfile").read_text()
    for package in ("libcurl4", "ca-certificates"):
        if not re.search(rf"apt-get install .*\b{package}\b", text):
            fault("Containerfile", f"no {package}, without which no server can be reached")


def check_units():
    for file in (DEPLOY / "systemd").glob("*.service"):
        text = file.read_text()
        made = re.findall(r"^ExecStartPre=(\S*?)/usr/bin/install .* (/\S+)$", text, re.M)
        for prefix, folder in made:
            if "+" not in prefix or f"ReadWritePaths=-{folder}\n" not in text:
                fault(file.name, f"the sandbox is made before {folder} is")
        if "%d" in text:
            fault(file.name, "%d is of systemd 250; the unit is for 247")


def check_metrics():
    known = set()
    for file in (SOURCE / "src").rglob("*.cc"):
        if not file.stem.endswith("_test"):
            known |= set(re.findall(r"purlin_[a-z0-9_]+", file.read_text()))
    rules = yaml.safe_load((DEPLOY / "prometheus/alerts.yml").read_text())
    check(rules, RULES, "alerts.yml")
    dashboard = json.loads((DEPLOY / "grafana/fleet.json").read_text())
    expressions = [("alerts.yml", rule["expr"]) for group in rules["groups"] for rule in group["rules"]]
    ids = [panel["id"] for panel in dashboard["panels"]]
    if len(set(ids)) != len(ids):
        fault("fleet.json", "two panels have one id")
    expressions += [("fleet.json", target["expr"]) for panel in dashboard["panels"] for target in panel["targets"]]
    for where, expression in expressions:
        names = set(re.findall(r"purlin_[a-z0-9_]+", expression))
        if not names:
            fault(where, f"no metric of Purlin in {expression}")
        for name in names - known:
            fault(where, f"no metric {name} in the code")
        if expression.count("(") != expression.count(")"):
            fault(where, f"brackets of {expression}")


check_manifests()
check_chart()
check_commands()
check_container()
check_units()
check_metrics()
print(*FAULTS, sep="\n")
sys.exit(1 if FAULTS else 0)
