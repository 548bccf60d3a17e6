"""Sizing, speed, cost and break-even: pure functions over numbers or arrays; no clock, network or database."""
