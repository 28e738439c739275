import inspect
import pickle
import re
from pathlib import Path

import pytest

import sweetspot as ss
from sweetspot import scenario

DOCUMENT = Path(__file__).parents[2] / "docs" / "scenario.md"


def keys_in(section: str) -> set[str]:
    """The keys in the first columns of a section's tables, except for kinds of traffic and keys of other tables."""
    text = DOCUMENT.read_text(encoding="utf-8").partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    found: set[str] = set()
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        head, _, *rows = table.splitlines()
        if head.startswith("| key |"):
            found.update(key for row in rows for key in re.findall(r"`(\w+)`", row.split("|")[1]))
    return found


@pytest.mark.parametrize(
    ("section", "table"),
    [
        ("`[path]`", scenario.Path),
        ("`[tcp]`", scenario.Tcp),
        ("`[[cross]]`", scenario.Cross),
        ("`[[transfer]]`", scenario.Transfer),
    ],
)
def test_every_key_of_the_document_has_a_type(section: str, table: type) -> None:
    keys = keys_in(section)
    assert len(keys) > 5
    assert keys <= set(table.__annotations__)


def test_every_key_at_the_top_is_a_keyword() -> None:
    assert keys_in("Top level") <= set(inspect.signature(ss.Scenario.__new__).parameters)


def test_changes_and_traces_of_one_direction_are_keywords() -> None:
    made = ss.Scenario(
        path=dict(
            rtt="100ms",
            rate="50Mbit/s",
            buffer="625pkt",
            backward=dict(rate="5Mbit/s", policer="4Mbit/s", policer_burst="30kB"),
            change=[dict(at=2 * ss.s, way="backward", delay="20ms")],
            trace=[dict(way="forward", content="0,10Mbit/s\n1,20Mbit/s\n")],
        ),
        transfer=[dict(sizing="max")],
        duration="5s",
    )
    toml = """
        duration = "5s"
        [path]
        rtt = "100ms"
        rate = "50Mbit/s"
        buffer = "625pkt"
        [path.backward]
        rate = "5Mbit/s"
        policer = "4Mbit/s"
        policer_burst = "30kB"
        [[path.change]]
        at = "2s"
        way = "backward"
        delay = "20ms"
        [[path.trace]]
        way = "forward"
        content = "0,10Mbit/s\\n1,20Mbit/s\\n"
        [[transfer]]
        sizing = "max"
    """
    assert made == ss.Scenario.from_toml(toml)


def test_keywords_and_toml_are_the_same_scenario(bare: ss.Scenario) -> None:
    toml = """
        warmup = "5s"
        duration = "5s"
        [path]
        rate = "50Mbit/s"
        rtt = "100ms"
        buffer = "625pkt"
        [[transfer]]
        sizing = "fixed:450pkt"
    """
    assert ss.Scenario.from_toml(toml) == bare


def test_quantities_equal_their_scenario_text(bare: ss.Scenario) -> None:
    same = ss.Scenario(
        path=dict(rate=50 * ss.Mbit_s, rtt=0.1 * ss.s, buffer=625.0 * ss.pkt),
        transfer=[dict(sizing="fixed:450pkt")],
        warmup=5 * ss.s,
        duration=5000 * ss.ms,
    )
    assert same == bare


@pytest.mark.parametrize("number", [1e-3, 0.1, 1 / 3, 50, 1e15, 1e16, 12345678.9])
def test_a_written_quantity_reads_back_as_the_same_number(number: float) -> None:
    text = str(ss.Quantity(number, "Mbit/s"))
    assert float(text.removesuffix("Mbit/s")) == number


def test_a_scenario_survives_pickling_with_its_changes(bare: ss.Scenario) -> None:
    changed = bare.replace({"path.buffer": 313 * ss.pkt, "transfer.0.sizing": "max"}, seed=7)
    copy = pickle.loads(pickle.dumps(changed))
    assert copy == changed
    assert copy != bare
    assert (type(copy), copy.seed) == (ss.Scenario, 7)


def test_an_unknown_key_is_named_beside_the_known_ones(bare: ss.Scenario) -> None:
    with pytest.raises(ss.ScenarioError, match=r"path\.bufer.*buffer"):
        bare.replace({"path.bufer": "3pkt"})


def test_an_impossible_value_is_named_with_its_line() -> None:
    with pytest.raises(ss.ScenarioError, match=r"line \d+: path\.rtt"):
        ss.Scenario(path=dict(rate="1Mbit/s", buffer="9pkt"), duration="1s")


def test_a_scenario_cannot_be_changed_in_place(bare: ss.Scenario) -> None:
    with pytest.raises(AttributeError):
        bare.seed = 3  # type: ignore[misc]
