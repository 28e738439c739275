from collections.abc import Iterable

import pytest

import sweetspot as ss
from sweetspot.contract import (
    Data,
    Entered,
    Input,
    Limited,
    MinimumRtt,
    Needs,
    Output,
    Probe,
    RequestTrain,
    Sender,
    SetWindow,
    Timeout,
    Train,
)


class Fixed(ss.Controller):
    """A constant window of 450 packets."""

    def needs(self) -> Needs:
        return Needs()

    def begin(self, config: ss.ControllerConfig) -> Iterable[Output]:
        assert config.mss == config.packet == 1000
        window = 450 * config.mss
        return [SetWindow(window), Limited(window)]

    def handle(self, now: float, input: Input) -> None:
        raise AssertionError("it needs nothing")


class Listener(ss.Controller):
    """Records its inputs."""

    def __init__(self) -> None:
        self.heard: list[tuple[float, Input]] = []

    def begin(self, config: ss.ControllerConfig) -> Iterable[Output]:
        self.wake_at(2.0)
        yield RequestTrain(packets=10, size=1000)

    def handle(self, now: float, input: Input) -> Iterable[Output] | None:
        self.heard.append((now, input))
        if isinstance(input, Timeout):
            self.wake_at(None)
            return [Entered("holding", "capacity-known")]
        return None


class Faulty(ss.Controller):
    def handle(self, now: float, input: Input) -> Iterable[Output]:
        raise RuntimeError("no idea")


class Babbler(ss.Controller):
    """Returns the output that it was given."""

    def __init__(self, output: object) -> None:
        self.output = output

    def handle(self, now: float, input: Input) -> list[object]:  # type: ignore[override]
        return [self.output]


def test_a_python_controller_behaves_like_the_native_one(bare: ss.Scenario) -> None:
    native = ss.run(bare).transfers[0]
    mine = ss.run(bare.replace({"transfer.0.sizing": "kernel"}), controllers=[Fixed()])
    transfer = mine.transfers[0]
    # Like the native controller, it needs no probes.
    assert transfer.goodput_bps == native.goodput_bps
    assert transfer.sizing == "python:Fixed"
    assert [event.kind for event in transfer.events] == ["limited"]


def test_a_controller_receives_data_probes_sender_state_trains_and_ticks(bare: ss.Scenario) -> None:
    ear = Listener()
    outcome = ss.run(bare, controllers=[ear])
    transfer = outcome.transfers[0]
    heard = [input for _, input in ear.heard]
    received = sum(input.size for input in heard if isinstance(input, Data))
    assert received >= transfer.goodput_bps * 5 / 8
    round_trips = [input.rtt for input in heard if isinstance(input, Probe)]
    assert min(round_trips) == pytest.approx(0.1, rel=0.02)
    # One every 20 ms for 10 s, except for those still in flight.
    assert 480 <= len(round_trips) <= 500
    # Each reply to a probe brings a report from the sender.
    reports = [input for input in heard if isinstance(input, Sender)]
    assert len(reports) == len(round_trips)
    assert max(report.cwnd for report in reports) > 10_000
    # The RTT of the handshake.
    assert any(isinstance(input, MinimumRtt) and input.rtt >= 0.1 for input in heard)
    assert [now for now, input in ear.heard if isinstance(input, Timeout)] == pytest.approx(
        [2.0], abs=0.02
    )
    trains = [input for input in heard if isinstance(input, Train)]
    assert [(train.sent, train.received) for train in trains] == [(10, 10)]
    # 9 packets after the first take 1.44 ms on a 50 Mbit/s link, more with probes and data between
    # them.
    assert trains[0].dispersion >= 9 * 8000 / 50e6 * 0.999
    assert [event.kind for event in transfer.events] == ["holding"]


@pytest.mark.parametrize(
    ("output", "error", "words"),
    [
        (SetWindow(-1.0), ValueError, "-1 is not a size"),
        (RequestTrain(3, float("nan")), ValueError, "NaN is not a size"),
        (Entered("asleep", "ended"), ValueError, "unknown phase"),  # type: ignore[arg-type]
        (Data(1, 0), TypeError, "expected an output of sweetspot.contract.Output, not Data"),
    ],
)
def test_invalid_output_of_a_controller_is_rejected(
    bare: ss.Scenario, output: object, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        ss.run(bare, controllers=[Babbler(output)])


def test_an_exception_in_a_controller_reaches_the_caller(bare: ss.Scenario) -> None:
    with pytest.raises(RuntimeError, match="no idea"):
        ss.run(bare, controllers=[Faulty()])


def test_more_controllers_than_transfers_are_rejected(bare: ss.Scenario) -> None:
    with pytest.raises(ValueError, match="2 controllers for 1 transfers"):
        ss.run(bare, controllers=[Fixed(), Fixed()])
