"""The parts of asking: providers side by side, bodies within bounds, manners, what an error may show."""
