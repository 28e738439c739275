"""Advice, searches, reports and diagnoses: their results, and the accuracy of their types."""

import gzip
import pathlib
import re
import struct
import sys
import types
import typing

import pytest

import sweetspot as ss
from sweetspot import tables


def agrees(value: object, kind: object, where: str = "it") -> None:
    """Fails unless ``value`` has the type ``kind``, a TypedDict, down to its last member."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        if value is None:
            assert type(None) in arguments, f"{where} is None"
            return
        kinds = [each for each in arguments if each is not type(None)]
        if len(kinds) > 1:
            # The members identify the table.
            assert isinstance(value, dict), where
            kinds = [each for each in kinds if set(typing.get_type_hints(each)) == set(value)]
        assert len(kinds) == 1, f"{where} is {value!r}"
        agrees(value, kinds[0], where)
    elif typing.is_typeddict(kind):
        assert isinstance(value, dict), where
        due = typing.get_type_hints(kind)
        assert set(value) == set(due), f"{where}: {set(value) ^ set(due)}"
        for name, each in due.items():
            agrees(value[name], each, f"{where}.{name}")
    elif origin is list:
        assert isinstance(value, list), where
        for each in value:
            agrees(each, arguments[0], f"{where}[]")
    elif origin is dict:
        assert isinstance(value, dict), where
        for each in value.values():
            agrees(each, arguments[1], f"{where}[]")
    elif origin is typing.Literal:
        assert value in arguments, f"{where} is {value}"
    elif kind is type(None):
        assert value is None, where
    elif kind is float:
        assert isinstance(value, (int, float)), f"{where} is {value!r}"
    else:
        assert isinstance(kind, type) and isinstance(value, kind), f"{where} is {value!r}"


def test_a_wrong_type_is_reported() -> None:
    with pytest.raises(AssertionError, match="it.p1"):
        agrees({f"p{n}": "no number" for n in (1, 5, 25, 50, 75, 95)}, tables.Quantiles)
    with pytest.raises(AssertionError, match="p95"):
        agrees({f"p{n}": None for n in (1, 5, 25, 50, 75)}, tables.Quantiles)


def test_without_cross_traffic_the_best_window_fills_the_path(bare: ss.Scenario) -> None:
    found = ss.mft(bare)
    # 50 Mbit/s, with packets of 1000 bytes on the wire: the path is full from C T_m = 625 packets on.
    assert found.mft_bps == pytest.approx(50e6, rel=0.01)
    assert 620 <= found.window_packets <= 1260
    assert found.mft_bps == max(trial.goodput_bps for trial in found.trials)
    assert ss.mft(bare, workers=1) == found


def test_without_cross_traffic_the_advised_window_is_the_closed_form() -> None:
    advice = ss.advise.window(rate=50 * ss.Mbit_s, rtt="100ms", buffer="313kB", kernel="6.18")
    agrees(advice, tables.WindowAdvice)
    low, high = ss.theory.sweet_spot("50Mbit/s", "100ms", "313kB")
    # Windows count only payload, 1448 of 1500 bytes.
    spot = (advice["sweet_spot_low_bytes"], advice["sweet_spot_high_bytes"])
    assert spot == pytest.approx((low * 1448 / 1500, high * 1448 / 1500), abs=1)
    assert advice["simulated"] is None
    assert len(advice["text"].splitlines()) >= 5


def test_loss_limits_reno_more_than_cubic() -> None:
    rates = []
    for congestion in ("cubic", "reno"):
        advice = ss.advise.window(
            rate="200Mbit/s", rtt="80ms", loss=1e-5, kernel="6.18", congestion=congestion
        )
        agrees(advice, tables.WindowAdvice)
        assert (advice["loss_limited"], advice["congestion"]) == (True, congestion)
        rates.append(advice["expected_bps"]["recommended"])
    # With random losses, Reno gets 1.3098 / sqrt(p) packets of 1500 B per 80 ms (Ott, Kemperman, Mathis 1996), minus one RTT of
    # recovery for each of 1 / p packets. RFC 9438, section 5.1, gives CUBIC 129 Mbit/s with periodic losses.
    assert rates[1] == pytest.approx(62.1e6, rel=0.02)
    assert rates[0] == pytest.approx(129e6, rel=0.05)


def test_beside_cross_traffic_windows_are_simulated() -> None:
    advice = ss.advise.window(rate="5Mbit/s", rtt="40ms", buffer="30kB", cross="udp:30%", kernel="6.18")
    agrees(advice, tables.WindowAdvice)
    assert advice["simulated"] is not None
    alone = ss.advise.window(
        rate="5Mbit/s", rtt="40ms", buffer="30kB", cross="udp:30%", kernel="6.18", simulate=False
    )
    agrees(alone, tables.WindowAdvice)
    assert alone["simulated"] is None


def test_router_advice_matches_its_types() -> None:
    for available in (None, "12MB"):
        advice = ss.advise.router(
            rate="1Gbit/s", rtt="60ms", input_rate="10Gbit/s", mix="short", flows=200, available=available
        )
        agrees(advice, tables.RouterAdvice)
        assert (advice["available"] is None) == (available is None)
    # C T is 5000 packets, 20 for each flow: too many for transfers that come and go, too few for persistent flows.
    between = ss.advise.router(rate="1Gbit/s", rtt="60ms", input_rate="10Gbit/s", flows=250)
    agrees(between, tables.RouterAdvice)
    assert between["basis"] == "between_rules" and between["two_rules"] is not None
    # A single link as fast as the output: nothing queues.
    alone = ss.advise.router(rate="1Gbit/s", rtt="60ms", input_rate="1Gbit/s", inputs=1)
    assert alone["basis"] == "nothing_queues"


@pytest.mark.skipif(sys.platform != "linux", reason="the settings are those of a Linux")
def test_host_advice_matches_its_types_and_names_what_caps_a_connection() -> None:
    # The peer's receive buffer holds 64 kB at most, which over 100 ms gives at most 64 kB x 8 / 0.1 s = 5.12 Mbit/s.
    peer = "net.ipv4.tcp_rmem = 4096 65536 64000\nkernel.osrelease = 6.18.0\n"
    advice = ss.advise.host(rate=1 * ss.Gbit_s, rtt="100ms", peer_sysctl=peer, peer_mtu="9000B", connections=2)
    agrees(advice, tables.HostAdvice)
    sending = next(each for each in advice["directions"] if each["direction"] == "sending")
    assert sending["cap_end"] == "the peer" and sending["expected_bps"] <= 5.12e6
    found = {(each["end"], each["what"]): each for each in advice["findings"]}
    wanted = found["the peer", "net.ipv4.tcp_rmem"]["wanted"].split()
    # More than C T for each connection, because the kernel's overhead counts, too.
    assert int(wanted[2]) >= 1.05 * 1e9 / 2 / 8 * 0.1
    # Without a path, buffers are not checked.
    bare = ss.advise.host(peer="127.0.0.1")
    agrees(bare, tables.HostAdvice)
    assert bare["window_bytes"] is None and bare["directions"] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(rate="1Gbit/s"), "rate and rtt: give both"),
        (dict(rate="1Gbit/s", rtt="soon"), "rtt: "),
        (dict(peer="nobody"), "peer: "),
        (dict(peer_sysctl="nothing"), "name = value"),
        (dict(path_mtu="20B"), "576B"),
        (dict(connections=0), "1 or more"),
    ],
)
def test_an_invalid_question_about_the_host_is_named(arguments: dict[str, typing.Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ss.advise.host(**arguments)


@pytest.mark.parametrize("argument", ["rate", "rtt", "mtu", "kernel", "cross"])
def test_an_invalid_quantity_is_named(argument: str) -> None:
    arguments: dict[str, typing.Any] = dict(rate="1Gbit/s", rtt="10ms") | {argument: "much"}
    with pytest.raises(ValueError, match=f"{argument}: "):
        ss.advise.window(**arguments)


def test_the_gauntlet_matches_its_types() -> None:
    agrees(ss.gauntlet(seed=3, paths=2, seeds=2, duration="1s"), tables.GauntletReport)


def test_reports_compare_the_named_results(tmp_path: pathlib.Path) -> None:
    busy = ss.Scenario(
        path=dict(rate="20Mbit/s", rtt="50ms", buffer="125pkt"),
        cross=[dict(kind="pareto", count=3, rate="1Mbit/s")],
        transfer=[dict(sizing="max")],
        warmup="5s",
        duration="5s",
    )
    sizes = {"small": "fixed:20pkt", "large": "fixed:80pkt"}
    finished = {
        name: [ss.run(busy.replace({"transfer.0.sizing": sizing}), seed=seed) for seed in range(6)]
        for name, sizing in sizes.items()
    }
    written = ss.report(finished, out=tmp_path / "page.html", svg=tmp_path / "pictures")
    text = written[0].read_text(encoding="utf-8")
    assert re.search("large is [^;<]* faster than small", text) and re.search("6.pairs", text)
    assert len(written) > 4 and all(path.suffix == ".svg" for path in written[1:])
    with pytest.raises(ValueError, match="only tables"):
        ss.report({"one": finished["small"][0]}, out=tmp_path / "one.html", svg=tmp_path / "none")
    assert not (tmp_path / "one.html").exists()


def test_a_file_without_results_is_named(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "other.json"
    file.write_text("{}")
    with pytest.raises(ValueError, match="other.json: it is JSON that no report shows"):
        ss.report([file], out=tmp_path / "page.html")


def capture(window: int, round_trips: int) -> bytes:
    """A sender's capture in which each RTT of 100 ms carries one window of ``window`` bytes."""
    packets: list[bytes] = []

    def packet(at: float, flags: int, seq: int, ack: int, size: int, ours: bool) -> None:
        source, destination = (b"\x0a\0\0\x01", b"\x0a\0\0\x02") if ours else (b"\x0a\0\0\x02", b"\x0a\0\0\x01")
        ports = (40000, 443) if ours else (443, 40000)
        advertised = 65535 if ours else window
        options = b"\x02\x04\x05\xb4" if flags & 2 else b""
        offset = (5 + len(options) // 4) << 4
        tcp = struct.pack(">HHIIBBHHH", *ports, seq, ack, offset, flags, advertised, 0, 0) + options
        length = 20 + len(tcp) + size
        ip = struct.pack(">BBHHHBBH", 0x45, 0, length, 0, 0, 64, 6, 0) + source + destination
        kept = ip + tcp
        seconds, micros = int(at), round(at % 1 * 1e6)
        packets.append(struct.pack("<IIII", seconds, micros, len(kept), length) + kept)

    packet(1.0, 2, 99, 0, 0, True)
    packet(1.1, 18, 499, 100, 0, False)
    packet(1.1, 16, 100, 500, 0, True)
    seq = 100
    for trip in range(round_trips):
        at = 1.1 + trip * 0.1
        left = window
        while left > 0:
            size = min(1460, left)
            packet(at, 16, seq, 500, size, True)
            seq, left, at = seq + size, left - size, at + 1e-6
        packet(1.2 + trip * 0.1 - 1e-5, 16, 500, seq, 0, False)
    return struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101) + b"".join(packets)


def test_a_window_filled_every_round_trip_is_the_limit(tmp_path: pathlib.Path) -> None:
    content = capture(window=14600, round_trips=60)
    found = ss.diagnose(content)
    agrees(found, tables.Diagnosis)
    flow = found["flows"][0]
    assert flow["verdict"]["class"] == "receiver_window"
    # 14,600 bytes per 100 ms.
    assert flow["goodput_bps"] == pytest.approx(14600 * 8 / 0.1, rel=0.05)
    packed = tmp_path / "slow.pcap.gz"
    packed.write_bytes(gzip.compress(content))
    assert ss.diagnose(packed) == found
    with pytest.raises(ValueError, match="zstd"):
        ss.diagnose(b"\x28\xb5\x2f\xfd")
    with pytest.raises(ValueError):
        ss.diagnose(b"not a capture at all")
