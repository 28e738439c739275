"""Closed forms of the papers, vectorised.

Every argument is a number in base units (bytes, bit/s, seconds), a text with its unit, or an array;
arrays broadcast as in NumPy. Scalars give a float, arrays an array of their common shape; several
results come as a tuple. An argument outside a formula's domain raises a ``ValueError`` that names it
(and the element); no function ever returns NaN.

>>> import numpy as np
>>> from sweetspot import theory
>>> theory.throughput(np.array([312_500, 700_000]), "50Mbit/s", "100ms", "313kB") / 1e6
array([25., 50.])
"""

from ._core.theory import (
    beside_elephants,
    beside_unresponsive,
    congestion_limited,
    elephants_optimum,
    ethernet_goodput,
    exponential_loss,
    morris_loss,
    on_congested_path,
    pftk,
    power_law_loss,
    sawtooth,
    square_root,
    square_root_rule,
    sweet_spot,
    throughput,
)

__all__ = [
    "beside_elephants",
    "beside_unresponsive",
    "congestion_limited",
    "elephants_optimum",
    "ethernet_goodput",
    "exponential_loss",
    "morris_loss",
    "on_congested_path",
    "pftk",
    "power_law_loss",
    "sawtooth",
    "square_root",
    "square_root_rule",
    "sweet_spot",
    "throughput",
]
