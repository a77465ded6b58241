"""What other parts ask of the classic protocol: other kinds of groups, and migration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from klamm.coordinator.classic.group import ClassicGroup
from klamm.coordinator.classic.member import ClassicMember
from klamm.coordinator.classic.protocol import ClassicProtocol
from klamm.coordinator.classic.replies import append_error_code
from klamm.coordinator.classic.state import ClassicState
from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.ports import Client, CoordinatorRecord
from klamm.coordinator.tests.classic.test_group import RANGE, STICKY, member
from klamm.coordinator.tests.fakes import FakeShard
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from klamm.wire.messages.stored.classic_group import GroupMetadataKey, GroupMetadataValue
from klamm.wire.messages.stored.consumer_group import ConsumerGroupMetadataKey
from klamm.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse


class OtherGroup:
    """A group of another kind, with nothing in it but what joining asks."""

    TYPE: ClassVar[str] = "other"

    def __init__(self, *, is_empty: bool) -> None:
        self.group_id = "g"
        self.state_name = "Empty" if is_empty else "Stable"
        self.protocol_type = "consumer"
        self.is_empty = is_empty

    def is_subscribed_to(self, topic: str) -> bool:
        return False

    def check_offset_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation_or_epoch: int,
        *,
        is_transactional: bool,
        api_version: int,
    ) -> None:
        raise NotImplementedError

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        raise NotImplementedError

    def check_offset_delete(self) -> None:
        raise NotImplementedError

    def check_deletion(self) -> None:
        raise NotImplementedError

    def offsets_expire_after_ms(self, retention_ms: int) -> Callable[[int], int] | None:
        raise NotImplementedError

    def tombstones(self) -> Sequence[CoordinatorRecord]:
        return [CoordinatorRecord(ConsumerGroupMetadataKey(group_id="g"), None)]


class World(FakeShard):
    def __init__(self) -> None:
        super().__init__()
        self.protocol = ClassicProtocol(self.shard)
        self.journal.replay = self.replay
        self.joined: list[JoinGroupResponse] = []
        self.synced: list[SyncGroupResponse] = []

    def replay(self, record: CoordinatorRecord) -> None:
        if isinstance(record.key, GroupMetadataKey):
            assert record.value is None or isinstance(record.value, GroupMetadataValue)
            self.protocol.replay_group_metadata(record.key, record.value)
        else:
            self.groups.pop("g")

    def join(self, version: int = 3, member_id: str = "", instance_id: str | None = None) -> None:
        request = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=60_000,
            member_id=member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=RANGE.metadata)],
        )
        client = Client(client_id="c", host="/10.0.0.1", api_version=version)
        self.protocol.join(request, client, self.joined.append)

    def sync(self, member_id: str, generation: int) -> None:
        request = SyncGroupRequest(group_id="g", generation_id=generation, member_id=member_id)
        client = Client(client_id="c", host="/10.0.0.1", api_version=3)
        self.protocol.sync(request, client, self.synced.append)

    @property
    def group(self) -> ClassicGroup:
        group = self.groups["g"]
        assert isinstance(group, ClassicGroup)
        return group


def test_an_empty_group_of_another_kind_becomes_classic() -> None:
    world = World()
    world.groups["g"] = OtherGroup(is_empty=True)
    world.join()
    assert [record.key for record in world.journal.records] == [
        ConsumerGroupMetadataKey(group_id="g"),
        GroupMetadataKey(group="g"),
    ]
    assert len(world.journal.batches) == 1
    assert world.group.state is ClassicState.PREPARING_REBALANCE


def test_it_stays_what_it_is_when_the_log_refuses() -> None:
    world = World()
    other = world.groups["g"] = OtherGroup(is_empty=True)
    world.journal.refuse(ErrorCode.REQUEST_TIMED_OUT)
    world.join()
    assert world.joined == [JoinGroupResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)]
    assert world.groups == {"g": other}


def test_it_stays_what_it_is_for_a_member_that_nobody_knows() -> None:
    world = World()
    other = world.groups["g"] = OtherGroup(is_empty=True)
    world.join(member_id="m")
    assert world.joined == [
        JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID, member_id="m")
    ]
    assert world.groups == {"g": other}
    assert not world.journal.batches


def test_a_group_of_another_kind_with_members_cannot_be_joined() -> None:
    world = World()
    world.groups["g"] = OtherGroup(is_empty=False)
    world.join()
    assert world.joined == [JoinGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)]


def test_the_log_decides_which_kind_a_group_is() -> None:
    world = World()
    world.groups["g"] = OtherGroup(is_empty=True)
    world.protocol.replay_group_metadata(
        GroupMetadataKey(group="g"), GroupMetadataValue(protocol=None, leader=None)
    )
    assert world.group.is_empty
    world.groups["g"] = OtherGroup(is_empty=True)
    world.protocol.replay_group_metadata(GroupMetadataKey(group="g"), None)
    assert not world.groups


def take_over(world: World, members: list[ClassicMember], *, rebalance: bool) -> None:
    template = ClassicGroup("g", protocol_type="consumer")
    record = template.record(
        members, generation=5, protocol="range", leader="a", timestamp=world.shard.now_ms()
    )
    world.journal.append([record])
    world.protocol.take_over("g", members, rebalance=rebalance)


def test_a_group_that_is_taken_over_works_on() -> None:
    world = World()
    members = [member("a", RANGE, STICKY), member("b", STICKY, RANGE)]
    take_over(world, members, rebalance=False)
    assert world.group.state is ClassicState.STABLE
    assert list(world.group.members.values()) == members
    world.sync("b", 5)
    assert world.synced == [
        SyncGroupResponse(protocol_type="consumer", protocol_name="range", assignment=b"B")
    ]
    assert sorted(world.timers.remaining_ms().values()) == [10_000, 10_000]


def test_or_it_begins_with_a_rebalance() -> None:
    world = World()
    take_over(world, [member("a"), member("b")], rebalance=True)
    assert world.group.state is ClassicState.PREPARING_REBALANCE
    world.join(member_id="a")
    world.join(member_id="b")
    assert [response.generation_id for response in world.joined] == [6, 6]


def test_a_group_that_becomes_another_kind_answers_all_who_wait() -> None:
    world = World()
    take_over(world, [member("a"), member("b")], rebalance=True)
    world.join(member_id="a")
    world.join(version=9)
    before = world.group
    world.journal.append(before.tombstones())
    world.protocol.dissolve(before)
    assert before.state is ClassicState.DEAD
    assert [response.error_code for response in world.joined] == [
        ErrorCode.MEMBER_ID_REQUIRED,
        ErrorCode.REBALANCE_IN_PROGRESS,
    ]
    assert world.joined[1].member_id == "a"
    assert not world.timers.remaining_ms()


def test_the_same_while_the_leader_assigns() -> None:
    world = World()
    take_over(world, [member("a"), member("b")], rebalance=True)
    world.join(member_id="a")
    world.join(member_id="b")
    world.sync("b", 6)
    before = world.group
    world.journal.append(before.tombstones())
    world.protocol.dissolve(before)
    assert world.synced == [SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)]
    assert not world.timers.remaining_ms()


def test_what_a_refusal_of_the_log_is_called() -> None:
    expected = {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
        ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
        ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
    }
    for code in ErrorCode:
        assert append_error_code(CoordinatorError(code)) is expected.get(code, code)
