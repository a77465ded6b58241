"""Ask Apache Kafka and write down what it answers."""

from __future__ import annotations

from compat_tests.oracle.hashes import questions
from compat_tests.oracle.java_oracle import JavaOracle
from compat_tests.oracle.scenarios import play, random_scenario, to_json
from compat_tests.oracle.written import ASSIGNMENTS, HASHES, write

# In the last ones it shows who gives next after a member with nothing to give, which is rare.
SEEDS = (*range(72), 221, 259, 298)


def main() -> None:
    with JavaOracle() as oracle:
        scenarios = [random_scenario(seed) for seed in SEEDS]
        write(ASSIGNMENTS, (to_json(scenario, play(scenario, oracle)) for scenario in scenarios))
        write(
            HASHES,
            (
                {"ask": ask, **arguments, "answer": oracle.ask(ask, **arguments)}
                for ask, arguments in questions()
            ),
        )


main()
