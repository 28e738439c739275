import pytest

import sweetspot as ss


class Fixed(ss.Controller):
    """A window of 450 packets, always."""

    def begin(self, setting: ss.ControllerSetting) -> None:
        assert setting.mss == setting.packet == 1000
        self.set_window(0.0, 450 * setting.mss)
        self.note(0.0, "limited", 450 * setting.mss)


class Listener(ss.Controller):
    """Writes down what it hears."""

    def __init__(self) -> None:
        self.received = 0
        self.round_trips: list[float] = []
        self.timeouts: list[float] = []
        self.trains: list[ss.Train] = []

    def begin(self, setting: ss.ControllerSetting) -> None:
        self.wake_at(2.0)
        self.request_train(0.0, packets=10, size=1000)

    def handle_data(self, now: float, size: int, unread: int) -> None:
        self.received += size

    def handle_probe(self, now: float, probe: ss.Probe) -> None:
        self.round_trips.append(probe.rtt)

    def handle_train(self, now: float, train: ss.Train) -> None:
        self.trains.append(train)

    def handle_timeout(self, now: float) -> None:
        self.timeouts.append(now)
        self.wake_at(None)


class Faulty(ss.Controller):
    def handle_probe(self, now: float, probe: ss.Probe) -> None:
        raise RuntimeError("no idea")


def test_a_controller_in_python_steers_like_the_native_one(bare: ss.Scenario) -> None:
    native = ss.run(bare).transfers[0]
    mine = ss.run(bare.replace({"transfer.0.sizing": "kernel"}), controllers=[Fixed()])
    transfer = mine.transfers[0]
    # Its probes share the path: 20 ms apart, well below 1 % of it.
    assert transfer.goodput_bps == pytest.approx(native.goodput_bps, rel=0.01)
    assert transfer.sizing == "python:Fixed"
    assert [event.kind for event in transfer.events] == ["limited"]


def test_a_controller_hears_of_data_probes_trains_and_time(bare: ss.Scenario) -> None:
    ear = Listener()
    outcome = ss.run(bare, controllers=[ear])
    assert ear.received >= outcome.transfers[0].goodput_bps * 5 / 8
    assert min(ear.round_trips) == pytest.approx(0.1, rel=0.02)
    # One every 20 ms for 10 s, but for those still under way.
    assert 480 <= len(ear.round_trips) <= 500
    assert ear.timeouts == pytest.approx([2.0], abs=0.02)
    assert [(train.sent, train.received) for train in ear.trains] == [(10, 10)]
    # 9 packets after the first leave a 50 Mbit/s link in 1.44 ms, probes and data between them.
    assert ear.trains[0].dispersion >= 9 * 8000 / 50e6 * 0.999


def test_what_a_controller_raises_reaches_the_caller(bare: ss.Scenario) -> None:
    with pytest.raises(RuntimeError, match="no idea"):
        ss.run(bare, controllers=[Faulty()])


def test_more_controllers_than_transfers_are_refused(bare: ss.Scenario) -> None:
    with pytest.raises(ValueError, match="2 controllers for 1 transfers"):
        ss.run(bare, controllers=[Fixed(), Fixed()])
