"""The quorum of controllers."""

from klamm.broker.config.definition import ConfigType, Definition
from klamm.broker.config.validators import ListOf, at_least

ONE = "klamm is its own and only controller."

DEFINITIONS: tuple[Definition, ...] = (
    Definition(
        "controller.quorum.voters",
        ConfigType.LIST,
        "",
        (
            "Controllers that vote, as id@host:port; klamm is its own and only controller, so "
            "that at most one may be named."
        ),
        valid=ListOf(),
    ),
    Definition(
        "controller.quorum.bootstrap.servers",
        ConfigType.LIST,
        "",
        (
            "Addresses at which the controllers are found; klamm is its own and only controller, "
            "so that at most one may be named."
        ),
        valid=ListOf(),
    ),
    Definition(
        "controller.quorum.election.timeout.ms",
        ConfigType.INT,
        "1000",
        "Time without a leader after which a controller calls an election.",
        ignored=ONE,
        valid=at_least(0),
    ),
    Definition(
        "controller.quorum.fetch.timeout.ms",
        ConfigType.INT,
        "2000",
        "Time without a fetch after which a controller leader steps down.",
        ignored=ONE,
        valid=at_least(0),
    ),
    Definition(
        "controller.quorum.election.backoff.max.ms",
        ConfigType.INT,
        "1000",
        "Longest random pause before a new election.",
        ignored=ONE,
        valid=at_least(0),
    ),
    Definition(
        "controller.quorum.append.linger.ms",
        ConfigType.INT,
        "25",
        "Pause in which metadata records are gathered before they are written.",
        ignored=ONE,
        valid=at_least(0),
    ),
    Definition(
        "controller.quorum.request.timeout.ms",
        ConfigType.INT,
        "2000",
        "Longest wait for the answer of another controller.",
        ignored=ONE,
        valid=at_least(0),
    ),
    Definition(
        "controller.quorum.retry.backoff.ms",
        ConfigType.INT,
        "20",
        "Pause before a request to another controller is sent again.",
        ignored=ONE,
        valid=at_least(0),
    ),
    Definition(
        "controller.quorum.auto.join.enable",
        ConfigType.BOOLEAN,
        "false",
        "Whether a new controller joins the voters by itself.",
        ignored=ONE,
    ),
    Definition(
        "controller.quorum.fetch.snapshot.max.bytes",
        ConfigType.INT,
        "1048576",
        "Most bytes in one answer with a part of a snapshot.",
        ignored=ONE,
        valid=at_least(1),
    ),
    Definition(
        "controller.quorum.fetch.max.bytes",
        ConfigType.INT,
        "1048576",
        "Most bytes in one answer with metadata records.",
        ignored=ONE,
        valid=at_least(1),
    ),
)
