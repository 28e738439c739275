import pickle

import pytest

import sweetspot as ss


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


def test_numbers_with_units_are_the_texts_they_stand_for(bare: ss.Scenario) -> None:
    same = ss.Scenario(
        path=dict(rate=50 * ss.Mbit_s, rtt=0.1 * ss.s, buffer=625.0 * ss.pkt),
        transfer=[dict(sizing="fixed:450pkt")],
        warmup=5 * ss.s,
        duration=5000 * ss.ms,
    )
    assert same == bare


@pytest.mark.parametrize("number", [1e-3, 0.1, 1 / 3, 50, 1e15, 1e16, 12345678.9])
def test_a_quantity_writes_a_number_that_reads_back(number: float) -> None:
    text = str(ss.Quantity(number, "Mbit/s"))
    assert float(text.removesuffix("Mbit/s")) == number


def test_a_scenario_survives_pickling_with_its_changes(bare: ss.Scenario) -> None:
    changed = bare.replace({"path.buffer": 313 * ss.pkt, "transfer.0.sizing": "max"}, seed=7)
    copy = pickle.loads(pickle.dumps(changed))
    assert copy == changed
    assert copy != bare
    assert (type(copy), copy.seed) == (ss.Scenario, 7)


def test_an_unknown_key_is_named_with_what_is_known(bare: ss.Scenario) -> None:
    with pytest.raises(ss.ScenarioError, match=r"path\.bufer.*buffer"):
        bare.replace({"path.bufer": "3pkt"})


def test_an_impossible_value_is_named_with_its_line() -> None:
    with pytest.raises(ss.ScenarioError, match=r"line \d+: path\.rtt"):
        ss.Scenario(path=dict(rate="1Mbit/s", buffer="9pkt"), duration="1s")


def test_a_scenario_cannot_be_changed_in_place(bare: ss.Scenario) -> None:
    with pytest.raises(AttributeError):
        bare.seed = 3  # type: ignore[misc]
