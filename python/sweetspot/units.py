"""Numbers with units, for scenarios.

>>> from sweetspot.units import Mbit_s, pkt
>>> str(50 * Mbit_s), str(1.5 * Mbit_s), str(625 * pkt)
('50Mbit/s', '1.5Mbit/s', '625pkt')
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Quantity:
    """A number and its unit, e.g. ``Quantity(50, "Mbit/s")``; writes itself as ``50Mbit/s``."""

    number: float
    unit: str

    def __str__(self) -> str:
        # 50.0 and 50 are the same quantity.
        whole = self.number == int(self.number) and abs(self.number) < 1e15
        return f"{int(self.number) if whole else repr(self.number)}{self.unit}"


@dataclass(frozen=True)
class Unit:
    """A unit to multiply numbers by: ``50 * Mbit_s``."""

    symbol: str

    def __rmul__(self, number: float) -> Quantity:
        return Quantity(number, self.symbol)


kbit_s = Unit("kbit/s")
Mbit_s = Unit("Mbit/s")
Gbit_s = Unit("Gbit/s")
us = Unit("us")
ms = Unit("ms")
s = Unit("s")
B = Unit("B")
kB = Unit("kB")
MB = Unit("MB")
pkt = Unit("pkt")
