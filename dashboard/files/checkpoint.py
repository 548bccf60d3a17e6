"""How the files of a checkpoint are called, in a folder as on the hub."""

CONFIG = "config.json"
QUANTISATION = "hf_quant_config.json"
INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
