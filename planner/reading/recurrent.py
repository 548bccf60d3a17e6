"""Layers with a state of fixed size: linear attention, state spaces, short convolutions."""

from planner.catalogues.models import AttentionGroup, AttentionKind
from planner.reading.fields import MOST_HEADS, Config


def recurrent(config: Config) -> AttentionGroup:
    """Read a layer with a fixed state, of the recurrence that the family has."""
    recurrence = config.family.linear if config.family is not None else None
    match recurrence:
        case "gated_delta":
            return _gated_delta(config)
        case "kda":
            return _kimi_delta(config)
        case "mamba2":
            return _mamba2(config)
        case "mamba1":
            return _mamba1(config)
    raise config.missing("model_type", what="linear or state-space layers of an unknown recurrence")


def _gated_delta(config: Config) -> AttentionGroup:
    return AttentionGroup(
        kind=AttentionKind.GATED_DELTA,
        layers=1,
        key_heads=config.need("linear_num_key_heads", up_to=MOST_HEADS),
        value_heads=config.need("linear_num_value_heads", up_to=MOST_HEADS),
        key_head_dim=config.need("linear_key_head_dim"),
        value_head_dim=config.need("linear_value_head_dim"),
        conv_kernel=config.need("linear_conv_kernel_dim"),
    )


def _kimi_delta(config: Config) -> AttentionGroup:
    block = config.part("linear_attn_config") or config
    width = block.need("head_dim") if block is not config else config.need("linear_head_dim")
    return AttentionGroup(
        kind=AttentionKind.KDA,
        layers=1,
        heads=block.need("num_heads", "linear_num_heads", up_to=MOST_HEADS),
        key_head_dim=width,
        value_head_dim=width,
        conv_kernel=block.need("short_conv_kernel_size", "linear_conv_kernel_dim"),
        has_full_rank_output_gate=block.flag("use_full_rank_gate"),
    )


def _mamba2(config: Config) -> AttentionGroup:
    is_pure = config.family is not None and config.family.is_all_linear
    own = ("num_heads",) if is_pure else ()  # of attention elsewhere
    heads = config.need("mamba_num_heads", "mamba_n_heads", *own, up_to=MOST_HEADS)
    width = config.raw("mamba_head_dim", "mamba_d_head", *(("head_dim",) if is_pure else ()))
    if width in (None, "auto"):
        inner = config.need("mamba_expand", "expand") * config.need("hidden_size")
        if inner % heads:
            raise config.wrong("mamba_n_heads", heads, f"a divisor of the inner width {inner}")
        width = inner // heads
    return AttentionGroup(
        kind=AttentionKind.MAMBA2,
        layers=1,
        heads=heads,
        head_dim=config.checked("mamba_d_head", width, MOST_HEADS, 1),
        state_size=config.need("ssm_state_size", "mamba_d_state", "state_size"),
        groups=config.need("n_groups", "mamba_n_groups"),
        conv_kernel=config.need("conv_kernel", "mamba_d_conv"),
    )


def _mamba1(config: Config) -> AttentionGroup:
    hidden = config.need("hidden_size")
    rank = config.raw("mamba_dt_rank", "time_step_rank")
    if rank in (None, "auto"):
        rank = -(-hidden // 16)  # the class's own rule for "auto"
    return AttentionGroup(
        kind=AttentionKind.MAMBA1,
        layers=1,
        inner_dim=config.need("mamba_expand", "expand") * hidden,
        state_size=config.need("mamba_d_state", "state_size"),
        dt_rank=config.checked("mamba_dt_rank", rank, MOST_HEADS, 1),
        conv_kernel=config.need("mamba_d_conv", "conv_kernel"),
    )


def short_convolution(config: Config) -> AttentionGroup:
    """Read a gated convolution over the last tokens."""
    return AttentionGroup(
        kind=AttentionKind.SHORT_CONV,
        layers=1,
        channels=config.count("conv_dim") or config.need("hidden_size"),
        conv_kernel=config.need("conv_L_cache"),
    )
