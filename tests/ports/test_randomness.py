from ports.randomness import Randomness, SeededRandomness, SystemRandomness


def draws(randomness: Randomness) -> list[object]:
    return [randomness.uniform(1, 2), randomness.integer(300, 600), randomness.uuid()]


def test_a_seed_determines_the_draws() -> None:
    assert draws(SeededRandomness("a")) == draws(SeededRandomness("a"))
    assert draws(SeededRandomness("a")) != draws(SeededRandomness("b"))


def test_draws_stay_within_their_bounds() -> None:
    randomness = SystemRandomness()

    assert all(1 <= randomness.uniform(1, 2) < 2 for _ in range(100))
    assert {1, 2} == {randomness.integer(1, 2) for _ in range(100)}
    assert randomness.uuid() != SystemRandomness().uuid()
