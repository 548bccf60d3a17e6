"""The parts of a training run: adapters and what a run keeps in memory."""
