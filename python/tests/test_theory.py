import numpy as np
import pytest

from sweetspot import theory

C, T, B = 50e6, 0.1, 313_000.0
PIPE = C * T / 8


def test_arrays_and_scalars_give_the_same_numbers() -> None:
    window = np.linspace(1e4, 2e6, 101)
    together = theory.throughput(window, C, T, B)
    alone = [theory.throughput(float(w), C, T, B) for w in window]
    assert together.tolist() == alone


def test_throughput_follows_its_three_regimes() -> None:
    # Eq. (4): S/T_m below C T_m, C up to C T_m + B_t; then eq. (17):
    # 3/4 C (P+B)^2 / ((P+B)^2 - P B) with P = 625 kB, B = 313 kB.
    peak = (PIPE + B) ** 2
    expected = [400_000 * 8 / T, C, C, 0.75 * C * peak / (peak - PIPE * B)]
    window = np.array([400_000, PIPE + 1, PIPE + B, PIPE + B + 1])
    assert theory.throughput(window, C, T, B) == pytest.approx(expected, rel=1e-6)


def test_shapes_broadcast_as_in_numpy() -> None:
    window = np.linspace(1e5, 1e6, 4).reshape(4, 1)
    rates = np.array([10e6, 50e6, 90e6])
    result = theory.throughput(window, rates, "100ms", "100kB")
    assert result.shape == (4, 3)
    for i in range(4):
        for j in range(3):
            assert result[i, j] == theory.throughput(window[i, 0], rates[j], 0.1, 1e5)


def test_strings_with_units_convert_to_base_units() -> None:
    assert theory.sweet_spot("50Mbit/s", "100ms", "313kB") == theory.sweet_spot(C, T, B)
    assert theory.sweet_spot(C, T, B) == (625_000, 938_000)


def test_several_results_are_a_tuple_of_arrays() -> None:
    low, high = theory.sweet_spot(np.array([C, 2 * C]), T, B)
    assert low.tolist() == [PIPE, 2 * PIPE]
    assert (high - low).tolist() == [B, B]


def test_loss_falls_with_the_square_of_the_sawtooth() -> None:
    # Eq. (14): p = 8/3 / (C T + B)^2 in packets; here 1250 packets at the peak.
    loss = theory.sawtooth(C, T, PIPE, 1000)[0]
    assert loss == pytest.approx(8 / 3 / 1250**2)


def test_an_element_out_of_domain_is_named_instead_of_becoming_nan() -> None:
    with pytest.raises(ValueError, match="element 1: socket_buffer NaN"):
        theory.throughput(np.array([1e5, np.nan]), C, T, B)
    with pytest.raises(ValueError, match="element 2: socket buffer 0 B"):
        theory.throughput(np.array([1.0, 2.0, 0.0]), C, T, B)
    with pytest.raises(ValueError, match="loss 1"):
        theory.square_root(1448, 0.1, 1.0)
    with pytest.raises(ValueError, match="rate: .*unit"):
        theory.throughput(1e5, "50", T, B)
    with pytest.raises(ValueError, match="shape"):
        theory.throughput(np.ones(3), np.ones(4), T, B)
