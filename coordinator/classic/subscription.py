"""What the coordinator reads of the bytes that consumers send to their leader: the topics."""

from __future__ import annotations

from collections.abc import Iterable

from klamm.wire.codec import decoder_for
from klamm.wire.errors import WireError
from klamm.wire.limits import DEFAULT_LIMITS
from klamm.wire.messages.stored.consumer_protocol import ConsumerProtocolSubscription

CONSUMER_PROTOCOL_TYPE = "consumer"
_VERSION_BYTES = 2


def topics_of(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """The topics of all subscriptions together, or None if one of them cannot be read.

    Every version of the subscription begins like version 0, so that this one is enough, also for
    versions that are yet to come; what follows is not looked at.
    """
    decode = decoder_for(ConsumerProtocolSubscription, 0)
    topics: set[str] = set()
    try:
        for subscription in subscriptions:
            topics.update(decode(subscription, _VERSION_BYTES, DEFAULT_LIMITS)[0].topics)
    except WireError:
        return None
    return frozenset(topics)
