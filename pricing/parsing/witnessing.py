"""What catalogues of other clouds' prices have in common: whose price a row is, and which GPUs it means."""

import re

from pricing.parsing.machines import Machine, machines, summed_machines

# What the instance names of a cloud look like; catalogues of one cloud do not say which it is.
_INSTANCES = {
    "aws": r"[a-z]+\d[a-z]*(?:-[a-z0-9]+)?\.(?:\d*x?large|metal)[a-z0-9-]*",
    "azure": r"Standard_\w+",
    "gcp": r"(?:[acgn]\d[a-z]*)-[a-z]+(?:-\d+g?)?",
    "lambda": r"gpu_\d+x_\w+",
    "oci": r"(?:VM|BM)\.\S+",
}
# Names of clouds in catalogues that are not ours. Source: docs/providers.md, "What is read".
_KEYS = {
    "amazon": "aws",
    "datacrunch": "verda",
    "lambdalabs": "lambda",
    "oracle": "oci",
    "ovh": "ovhcloud",
    "vast": "vastai",
}


def key_of(cloud: str) -> str:
    """Return our key of a cloud that a catalogue names."""
    name = cloud.strip().lower()
    return _KEYS.get(name, name)


def cloud_of(instances: list[str]) -> str | None:
    """Return the cloud whose instances these are, by the form of all names; None where it stays open."""
    for cloud, pattern in _INSTANCES.items():
        if instances and all(re.fullmatch(pattern, name) for name in instances):
            return cloud
    return None


def known_machine(cloud: str, instance: str) -> Machine | None:
    """Return which GPUs an instance holds where our own tables know it."""
    if cloud in {"aws", "azure"}:
        return machines(cloud).get(instance)
    summed = summed_machines().get(instance) if cloud == "gcp" else None
    return summed.machine if summed else None


def form_in(instance: str) -> str | None:
    """Return the form that an instance's name states: "gpu_8x_h100_sxm5"."""
    match = re.search(r"(sxm|pcie|nvl(?!ink))", instance.lower())
    return {"sxm": "SXM", "pcie": "PCIe", "nvl": "NVL"}[match[1]] if match else None
