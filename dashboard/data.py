"""
What the pages show, computed once for each question: the store, its prices, plans and sizings, cached.

A plan is kept by its question and the store's revision, so that any write - by this process or another - makes the
next page compute it anew.
"""

import os
from datetime import UTC, datetime

import streamlit as st

from planner.gpus import find_gpu
from planner.models import find_model
from planner.quants import find_quant
from planner.scenario import Scenario
from planner.sizing import Sizing, size
from planner.units import GB
from planner.workload import Machine, Workload

# Where no device is chosen, the size page starts from the one that most pages about sizing use.
DEFAULT_GPU = "H100 SXM"
# Ages of prices are part of a plan: it is computed anew after this time even if nothing was written.
KEEP_SECONDS = 600


def now() -> datetime:
    """Return the present."""
    return datetime.now(UTC)


def workload(scenario: Scenario) -> Workload:
    """Return what is asked of one replica."""
    return scenario.workload(find_model(scenario.model).model, find_quant(scenario.quant))


def machine(scenario: Scenario) -> Machine:
    """Return the machine that the size page looks at."""
    gpu = find_gpu(scenario.gpu or DEFAULT_GPU).gpu
    return Machine(gpu=gpu, gpu_count=scenario.gpus or 1)


def sizing(scenario: Scenario) -> Sizing:
    """Return memory and speed of the question on that machine."""
    measured = scenario.decode_tokens_per_s if scenario.gpu else None
    return size(workload(scenario), machine(scenario), measured_decode_tokens_per_s=measured)


def gigabytes(count: float | None) -> str | None:
    """Return a number of bytes in decimal GB, as checkpoints are listed."""
    return None if count is None else f"{count / GB:,.1f}"
