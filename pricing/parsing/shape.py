"""
The machine for which a price is summed, where CPU, memory and disk are chosen and paid beside the GPU.

Our own choice, the same for every such provider, so that their sums can be compared with each other and with
instances that are sold whole: enough to load and serve weights that fill the GPU. Instances of Hyperstack,
Lambda and Nebius have 14 to 31 vCPU and 58 to 225 GB RAM for a GPU; a person with a choice takes less.
The providers' own descriptions name the components and no shape (docs/providers.md, "TensorDock, Cudo").
"""

VCPUS_PER_GPU = 8
RAM_GB_PER_GPU = 32
DISK_GB_PER_GPU = 200
# GPUs in one machine, as far as the provider allows.
SIZES = (1, 2, 4, 8)
