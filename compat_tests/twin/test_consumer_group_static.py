"""Static members of consumer groups (KIP-848): they go for a while and come back as another."""

from __future__ import annotations

import pytest

from compat_tests.twin.consumer_groups import ConsumerGroup


@pytest.mark.every_version("consumer_group_heartbeat")
def test_a_static_member_comes_back(consumer_group: ConsumerGroup, version: int) -> None:
    """It leaves with epoch -2, and gets the same under another member id."""
    topic = consumer_group.create_topic(partitions=2)
    before = consumer_group.member("before", instance="one")
    before.join([topic], version)
    before.own(version=version)
    before.leave(version, epoch=-2)
    consumer_group.describe()
    after = consumer_group.member("after", instance="one")
    after.join([topic], version)
    after.own(version=version)
    consumer_group.describe()
    before.beat(version)
    before.leave(version)
    after.leave(version)
    consumer_group.describe()


def test_an_instance_that_is_taken(consumer_group: ConsumerGroup) -> None:
    topic = consumer_group.create_topic(partitions=2)
    member = consumer_group.member("first", instance="one")
    member.join([topic])
    member.own()
    twin_member = consumer_group.member("second", instance="one")
    twin_member.join([topic])
    twin_member.beat(member_epoch=1)
    twin_member.leave()
    twin_member.leave(epoch=-2)
    member.beat(instance_id="two")
    member.beat(instance_id=None)
    member.beat()
    consumer_group.describe()


def test_a_static_member_comes_back_with_other_topics(consumer_group: ConsumerGroup) -> None:
    first, second = consumer_group.create_topic(), consumer_group.create_topic()
    before = consumer_group.member("before", instance="one")
    before.join([first])
    before.own()
    before.leave(epoch=-2)
    after = consumer_group.member("after", instance="one")
    after.join([second])
    after.own({})
    after.beat()
    consumer_group.describe()


def test_a_static_member_leaves_for_good(consumer_group: ConsumerGroup) -> None:
    topic = consumer_group.create_topic()
    member = consumer_group.member("before", instance="one")
    member.join([topic])
    member.leave(epoch=-1)
    consumer_group.describe()
    after = consumer_group.member("after", instance="one")
    after.join([topic])
    consumer_group.describe()
