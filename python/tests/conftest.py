import pathlib

import pytest

import sweetspot as ss

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def root() -> pathlib.Path:
    return ROOT


@pytest.fixture
def bare() -> ss.Scenario:
    """50 Mbit/s, 100 ms, so C T_m is 625 packets of 1000 B."""
    return ss.Scenario(
        path=dict(rate="50Mbit/s", rtt="100ms", buffer="625pkt"),
        transfer=[dict(sizing="fixed:450pkt")],
        warmup="5s",
        duration="5s",
    )
