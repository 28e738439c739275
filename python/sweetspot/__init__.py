"""Find, simulate and explain the window at which a TCP transfer is fastest.

>>> import sweetspot as ss
>>> scenario = ss.Scenario(
...     path=dict(rate="50Mbit/s", rtt="100ms", buffer="625pkt"),
...     transfer=[dict(sizing="fixed:450pkt")],
...     warmup="5s",
...     duration="20s",
... )
>>> round(ss.run(scenario).transfers[0].goodput_bps / 1e6)
36

A scenario and a seed determine a run: the command line, this package and every worker give the
same result. Rates are in bit/s, times in seconds and sizes in bytes; 1 kB is 1000 B.
"""

from . import advise, contract, tables, theory
from ._core import (
    BottleneckOutcome,
    ControllerEvent,
    ControllerConfig,
    CrossOutcome,
    EngineError,
    Outcome,
    ScenarioError,
    TransferOutcome,
    __version__,
)
from .controller import Controller
from .engine import run, series
from .population import gauntlet
from .results import diagnose, report
from .scenario import Scenario
from .search import Mft, Trial, mft
from .sockets import SizedSocket, SocketReport, size_pools, sized
from .studies import sweep
from .units import B, Gbit_s, MB, Mbit_s, Quantity, kB, kbit_s, ms, pkt, s, us

__all__ = [
    "B",
    "BottleneckOutcome",
    "Controller",
    "ControllerEvent",
    "ControllerConfig",
    "CrossOutcome",
    "EngineError",
    "Gbit_s",
    "MB",
    "Mbit_s",
    "Mft",
    "Outcome",
    "Quantity",
    "Scenario",
    "ScenarioError",
    "SizedSocket",
    "SocketReport",
    "TransferOutcome",
    "Trial",
    "__version__",
    "advise",
    "contract",
    "diagnose",
    "gauntlet",
    "kB",
    "kbit_s",
    "mft",
    "ms",
    "pkt",
    "report",
    "run",
    "s",
    "series",
    "size_pools",
    "sized",
    "sweep",
    "tables",
    "theory",
    "us",
]
