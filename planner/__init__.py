"""Sizing, speed, cost and break-even: pure functions of numbers or arrays, no clock, network, database."""
