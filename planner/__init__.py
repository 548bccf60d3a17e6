"""Sizing, speed, cost and break-even: pure functions of numbers or arrays, without clock, network or database."""
