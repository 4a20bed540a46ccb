"""Reads rendered manifests as a strict reader would: nothing latest-tagged, unbounded, or root."""

import sys

import yaml


def faults(workload):
    """What is wrong with a Deployment or StatefulSet, one sentence each."""
    pod = workload["spec"]["template"]["spec"]
    context = pod.get("securityContext", {})
    if not context.get("runAsNonRoot") or not context.get("runAsUser"):
        yield "may run as root"
    if context.get("seccompProfile", {}).get("type") != "RuntimeDefault":
        yield "may use every system call"
    if pod.get("automountServiceAccountToken") is not False:
        yield "gets a token of the API server"
    for volume in pod.get("volumes", []):
        if "hostPath" in volume or "emptyDir" in volume and not volume["emptyDir"].get("sizeLimit"):
            yield f"volume {volume['name']} has no bound"
    for container in pod.get("initContainers", []) + pod["containers"]:
        name = container["name"]
        _, _, tag = container["image"].rpartition("/")[2].partition(":")
        if tag in ("", "latest"):
            yield f"{name} has an image without a version: {container['image']}"
        rights = container.get("securityContext", {})
        if rights.get("allowPrivilegeEscalation") is not False or rights.get("capabilities", {}).get("drop") != ["ALL"]:
            yield f"{name} may gain rights"
        if not rights.get("readOnlyRootFilesystem"):
            yield f"{name} may write to its image"
        for resource in ("cpu", "memory", "ephemeral-storage"):
            if any(resource not in container.get("resources", {}).get(kind, {}) for kind in ("requests", "limits")):
                yield f"{name} may use {resource} without a bound"
        for probe in ("readinessProbe", "livenessProbe"):
            if probe not in container:
                yield f"{name} has no {probe}"


found = [
    f"{manifest['kind']} {manifest['metadata']['name']}: {fault}"
    for manifest in yaml.safe_load_all(sys.stdin)
    if "template" in manifest.get("spec", {})
    for fault in faults(manifest)
]
sys.exit("\n".join(found) or 0)
