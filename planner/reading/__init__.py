"""Read models from their own files: configurations, safetensors indexes and headers, GGUF headers; no I/O."""
