"""What a model has to read and to compute: for one step of a batch, and for a prompt. No hardware yet."""

from dataclasses import dataclass

import numpy as np

from planner.memory import CacheLayout, Weights, state_bytes
from planner.serving.shape import Shape
from planner.units import Numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """
    What serving takes, whatever it runs on; numbers, or arrays that broadcast.

    Rows of different models stand in one record where each field is an array over rows.
    """

    dense_read_bytes: Numbers  # weights read for every token
    mixer_read_bytes: Numbers  # of these, of attention and other mixers
    routed_bytes: Numbers  # of all routed experts
    routed_share: Numbers  # of the routed experts, used by one token
    experts_per_token: Numbers  # routed ones; 0 without
    dense_params: Numbers  # multiplied for one token, experts left out
    expert_params: Numbers  # of the routed experts that one token uses
    head_params: Numbers
    expert_columns: Numbers  # width of one expert; infinite without experts
    is_moe: Numbers  # 1 or 0
    is_latent: Numbers  # 1 or 0: attention over a latent, which takes more kernels
    blocks: Numbers
    hidden_size: Numbers
    cache_bytes: Numbers  # read for one sequence in a step, summed over the ranks
    state_bytes: Numbers  # of one sequence; read and written in a step
    attention_flops: Numbers  # of one new token
    prompt_attention_flops: Numbers  # of the tokens of a prompt that are computed
    prompt_tokens: Numbers  # computed; what a cache of prefixes holds is left out
    output_tokens: Numbers


def work_of(
    shape: Shape,
    weights: Weights,
    layout: CacheLayout,
    *,
    context_tokens: Numbers,
    input_tokens: Numbers,
    output_tokens: Numbers,
    cached_tokens: Numbers,
    bytes_per_element: Numbers,
    ranks: Numbers,
) -> Work:
    """
    Return what serving a model takes.

    Args:
        shape: The model.
        weights: In the format served.
        layout: How the engine keeps cache and state.
        context_tokens: Of each sequence in a decode step. [tokens]
        input_tokens: Of a prompt. [tokens]
        output_tokens: Of an answer. [tokens]
        cached_tokens: Of a prompt, found in a cache of prefixes; at least one token is computed. [tokens]
        bytes_per_element: Of the attention cache. [B]
        ranks: Tensor-parallel ranks that hold one sequence.
    """
    expert_params = shape.routed_params * shape.routed_share
    held = np.minimum(cached_tokens, input_tokens - 1.0)
    return Work(
        dense_read_bytes=weights.dense_read_bytes,
        mixer_read_bytes=mixer_bytes(shape, weights),
        routed_bytes=weights.routed_bytes,
        routed_share=shape.routed_share,
        experts_per_token=shape.experts_per_token,
        dense_params=shape.active_params - expert_params,
        expert_params=expert_params,
        head_params=shape.head_params,
        expert_columns=shape.expert_columns,
        is_moe=shape.is_moe,
        is_latent=shape.is_latent,
        blocks=shape.blocks,
        hidden_size=shape.hidden_size,
        cache_bytes=cache_read_bytes(shape, context_tokens, bytes_per_element, ranks),
        state_bytes=state_bytes(shape, 1.0, layout),
        attention_flops=attention_flops_per_token(shape, context_tokens),
        prompt_attention_flops=attention_flops_of_prompt(shape, input_tokens)
        - attention_flops_of_prompt(shape, held),
        prompt_tokens=input_tokens - held,
        output_tokens=output_tokens,
    )


def mixer_bytes(shape: Shape, weights: Weights) -> Numbers:
    """Weights of attention and other mixers: their share of what is read for every token. [B]"""
    return weights.dense_read_bytes * shape.mixer_params / (shape.linear_params + shape.head_params)


def experts_read_share(routed_share: Numbers, tokens: Numbers, exponent: Numbers) -> Numbers:
    """
    Share of the routed experts that a step of so many tokens reads: 1 - (1 - k/E)^(tokens^x).

    Source:
        docs/methodology.md, "Speed".
    """
    share: Numbers = 1.0 - np.power(1.0 - routed_share, np.power(tokens, exponent))
    return share


def weights_read_bytes(shape: Shape, weights: Weights, tokens: Numbers, exponent: Numbers = 1.0) -> Numbers:
    """Weights that a step of so many tokens reads; 1: each token chooses its experts on its own. [B]"""
    share = experts_read_share(shape.routed_share, tokens, exponent)
    return weights.dense_read_bytes + weights.routed_bytes * share


def cache_read_bytes(
    shape: Shape, context_tokens: Numbers, bytes_per_element: Numbers, ranks: Numbers
) -> Numbers:
    """Cache of one sequence that one step reads, summed over ranks; a latent is read by each of them. [B]"""
    elements: Numbers = 0.0
    for term in shape.cache_terms:
        read = np.minimum(context_tokens, np.minimum(term.window_tokens, term.read_budget_tokens))
        copies = np.maximum(1.0, ranks / term.kv_heads)
        elements = elements + term.elements_per_token * read * copies
    return elements * bytes_per_element


def attention_flops_per_token(shape: Shape, context_tokens: Numbers) -> Numbers:
    """Operations of attention for one new token that looks back at the context. [FLOP]"""
    flops: Numbers = shape.recurrent_flops_per_token
    for work in shape.attention:
        flops = flops + work.flops_per_pair * np.minimum(context_tokens, work.window_tokens)
    return flops


def attention_flops_of_prompt(shape: Shape, tokens: Numbers) -> Numbers:
    """Operations of attention over a whole prompt: each token looks back at those before it. [FLOP]"""
    flops: Numbers = shape.recurrent_flops_per_token * tokens
    for work in shape.attention:
        window = np.minimum(tokens, work.window_tokens)
        flops = flops + work.flops_per_pair * window * (tokens - window / 2)
    return flops
