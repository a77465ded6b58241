"""Scripts that talk to the consumer protocol, and what it answers.

A script is a text: commands, a line `----`, and what they print, up to an empty line. Then come
the next commands. `#` begins a comment. What is printed: every answer (`<`) with the fields that
say something; every record that is stored (`+`, or `-` for a tombstone); the group (`=`) whenever
it has changed.

Commands:

    set NAME=VALUE ...          settings
    config NAME=VALUE ...       configs of the group
    topic NAME PARTITIONS [RACKS]           creates a topic, or changes it
    no-topic NAME
    join MEMBER [TOPICS] [regex= instance= rack= assignor= timeout= owned= epoch= v= id=]
    beat MEMBER [the same]      a heartbeat with nothing but what is given, at the epoch told last
    ack MEMBER [the same]       a heartbeat with the partitions that the member was told last
    leave MEMBER [instance=] | away MEMBER instance=
    resolve                     lets the look-up of expressions end
    classic-join MEMBER PROTOCOL:TOPICS ... [id= instance= session= timeout= owned= type= v=]
    classic-sync MEMBER [generation= protocol= type= instance= assign=MEMBER/PARTITIONS|... v=]
    classic-beat MEMBER [generation= instance=]
    classic-leave MEMBER ... [v=]           members, or /INSTANCE, or MEMBER/INSTANCE
    commit MEMBER TOPIC:PARTITION ... [epoch= instance= v= transactional]
    fetch MEMBER [epoch=]
    advance N                   milliseconds
    refuse N [CODE]             the log refuses the next N appends
    describe | timers | delete
    reload | unload             the shard

Partitions are written `foo:0-2,4;bar:1`, and `-` for none.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any
from uuid import UUID

from klamm.coordinator.classic.group import ClassicGroup
from klamm.coordinator.consumer.group import ConsumerGroup
from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.metadata_hash import group_hash, topic_hash
from klamm.coordinator.tests.consumer.printing import (
    REBALANCE_TIMEOUT_MS,
    Names,
    printed_record,
    printed_response,
    ranges,
)
from klamm.coordinator.tests.consumer.world import World
from klamm.wire.codec import decode, encode
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.consumer_group_describe import ConsumerGroupDescribeResponse
from klamm.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from klamm.wire.messages.heartbeat import HeartbeatRequest
from klamm.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from klamm.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from klamm.wire.messages.stored.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
    ConsumerProtocolSubscriptionTopicPartition,
)
from klamm.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from klamm.wire.schema import Message

GROUP = "g"
Options = dict[str, str]


class Script:
    """The state of one script: what the members were told, and what was printed."""

    def __init__(self, world: Any = None) -> None:
        self.world = World() if world is None else world
        self.output: list[str] = []
        self.shown = ""
        self.epochs: dict[str, int] = {}
        self.assignments: dict[str, dict[UUID, list[int]]] = {}
        self.ids: dict[str, str] = {}
        self.topic_ids: dict[str, UUID] = {}
        self.names = Names(self._topic_name, self._hash_name, self.world.shard.now_ms)
        self.world.replayed = lambda record: self._print(printed_record(record, self.names))

    def run(self, line: str) -> list[str]:
        """Run a command, and return what it prints."""
        verb, *words = line.split()
        options = dict(word.split("=", 1) for word in words if "=" in word)
        names = [word for word in words if "=" not in word]
        getattr(self, f"do_{verb.replace('-', '_')}")(names, options)
        self._show_group()
        output, self.output = self.output, []
        return output

    # The consumer protocol.

    def do_join(self, names: list[str], options: Options) -> None:
        self.epochs[names[0]] = 0
        topics = {} if len(names) > 1 or "regex" in options else {"topics": "-"}
        given = {"timeout": str(REBALANCE_TIMEOUT_MS), "owned": "-", **topics, **options}
        self.do_beat(names, given)

    def do_ack(self, names: list[str], options: Options) -> None:
        held = self.assignments.get(names[0], {})
        owned = ";".join(f"{self._topic_name(each)}:{ranges(held[each])}" for each in held)
        self.do_beat(names, {"owned": owned or "-", **options})

    def do_leave(self, names: list[str], options: Options) -> None:
        self.do_beat(names, {"epoch": "-1", **options})

    def do_away(self, names: list[str], options: Options) -> None:
        self.do_beat(names, {"epoch": "-2", **options})

    def do_beat(self, names: list[str], options: Options) -> None:
        name = names[0]
        topics = names[1] if len(names) > 1 else options.get("topics")
        owned = options.get("owned")
        request = ConsumerGroupHeartbeatRequest(
            group_id=options.get("group", GROUP),
            member_id=self._member_id(name, options),
            member_epoch=int(options.get("epoch", self.epochs.get(name, 0))),
            instance_id=options.get("instance"),
            rack_id=options.get("rack"),
            rebalance_timeout_ms=int(options.get("timeout", -1)),
            subscribed_topic_names=None if topics is None else _listed(topics),
            subscribed_topic_regex=options.get("regex"),
            server_assignor=options.get("assignor"),
            topic_partitions=None if owned is None else self._partitions(owned),
        )
        response = self._send(name, request, int(options.get("v", 1)))
        if response.error_code == 0:
            self.epochs[name] = response.member_epoch
            self.ids[name] = response.member_id
            if response.assignment is not None:
                self.assignments[name] = {
                    topic.topic_id: topic.partitions
                    for topic in response.assignment.topic_partitions
                }

    # The classic protocol.

    def do_classic_join(self, names: list[str], options: Options) -> None:
        name, *protocols = names
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=int(options.get("session", 10_000)),
            rebalance_timeout_ms=int(options.get("timeout", REBALANCE_TIMEOUT_MS)),
            member_id=self._classic_id(name, options),
            group_instance_id=options.get("instance"),
            protocol_type=options.get("type", "consumer"),
            protocols=[self._protocol(each, options.get("owned", "-")) for each in protocols],
        )
        response = self._send(name, request, int(options.get("v", 9)))
        if response is not None and response.member_id:
            self.ids[name] = response.member_id
            self.epochs[name] = response.generation_id

    def do_classic_sync(self, names: list[str], options: Options) -> None:
        version = int(options.get("v", 5))
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=int(options.get("generation", self.epochs.get(names[0], -1))),
            member_id=self._classic_id(names[0], options),
            group_instance_id=options.get("instance"),
        )
        if version >= 5:
            request.protocol_type = options.get("type", "consumer")
            request.protocol_name = options.get("protocol", "range")
        for given in options["assign"].split("|") if "assign" in options else []:
            member, _, partitions = given.partition("/")
            assignment = ConsumerProtocolAssignment(
                assigned_partitions=[
                    ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=numbers)
                    for topic, numbers in _read_partitions(partitions)
                ],
                user_data=options["user"].encode() if "user" in options else None,
            )
            request.assignments.append(
                SyncGroupRequestAssignment(
                    member_id=self.ids[member], assignment=b"\0\1" + encode(assignment, 1)
                )
            )
        self._send(names[0], request, version)

    def do_classic_beat(self, names: list[str], options: Options) -> None:
        request = HeartbeatRequest(
            group_id=GROUP,
            generation_id=int(options.get("generation", self.epochs.get(names[0], -1))),
            member_id=self._classic_id(names[0], options),
            group_instance_id=options.get("instance"),
        )
        self._send(names[0], request, 4)

    def do_classic_leave(self, names: list[str], options: Options) -> None:
        version = int(options.get("v", 5))
        request = LeaveGroupRequest(group_id=GROUP)
        if version < 3:
            request.member_id = self._classic_id(names[0], options)
        for name in names if version >= 3 else []:
            member, slash, instance = name.partition("/")
            request.members.append(
                MemberIdentity(
                    member_id=self._classic_id(member, {}) if member else "",
                    group_instance_id=instance if slash else None,
                )
            )
        self._send(",".join(names), request, version)

    # Offsets.

    def do_commit(self, names: list[str], options: Options) -> None:
        name, *partitions = names
        try:
            check = self._group().check_offset_commit(
                self._member_id(name, options),
                options.get("instance"),
                int(options.get("epoch", self.epochs.get(name, -1))),
                is_transactional="transactional" in options,
                api_version=int(options.get("v", 9)),
            )
            for topic in self._partitions(";".join(partitions)):
                for partition in topic.partitions:
                    if check is not None:
                        check(self._topic_name(topic.topic_id), topic.topic_id, partition)
            self._print(f"< {name} committed")
        except CoordinatorError as error:
            self._print(f"< {name} {error.code.name} {error.message!r}")

    def do_fetch(self, names: list[str], options: Options) -> None:
        try:
            self._group().check_offset_fetch(
                self._member_id(names[0], options),
                int(options.get("epoch", self.epochs.get(names[0], -1))),
            )
            self._print(f"< {names[0]} fetched")
        except CoordinatorError as error:
            self._print(f"< {names[0]} {error.code.name} {error.message!r}")

    # The world.

    def do_set(self, names: list[str], options: Options) -> None:
        settings: dict[str, Any] = {
            name: int(value) if value.isdigit() else value for name, value in options.items()
        }
        self.world.set(**settings)

    def do_config(self, names: list[str], options: Options) -> None:
        self.world.configs.update({name: int(value) for name, value in options.items()})

    def do_topic(self, names: list[str], options: Options) -> None:
        self.world.add_topic(names[0], int(names[1]), names[2] if len(names) > 2 else None)
        topic = self.world.shard.topics.find(names[0])
        self.topic_ids[names[0]] = topic.topic_id

    def do_no_topic(self, names: list[str], options: Options) -> None:
        self.world.remove_topic(names[0])

    def do_resolve(self, names: list[str], options: Options) -> None:
        self.world.background.finish()

    def do_advance(self, names: list[str], options: Options) -> None:
        self.world.fakes.timers.advance(int(names[0]))

    def do_refuse(self, names: list[str], options: Options) -> None:
        code = ErrorCode[names[1]] if len(names) > 1 else ErrorCode.NOT_ENOUGH_REPLICAS
        self.world.fakes.journal.refuse(code, appends=int(names[0]))

    def do_describe(self, names: list[str], options: Options) -> None:
        described = self.world.consumer.describe(names[0] if names else GROUP)
        encode(ConsumerGroupDescribeResponse(groups=[described]), 1)
        self._print(printed_response("describe", described, self.names))
        for member in described.members:
            self._print(
                f"<   {member.member_id} type={member.member_type} epoch={member.member_epoch} "
                f"instance={member.instance_id} rack={member.rack_id} "
                f"{','.join(member.subscribed_topic_names) or '-'} "
                f"regex={member.subscribed_topic_regex!r} {member.client_id}@{member.client_host} "
                f"has {self.names.partitions(member.assignment.topic_partitions)} "
                f"of {self.names.partitions(member.target_assignment.topic_partitions)}"
            )

    def do_timers(self, names: list[str], options: Options) -> None:
        remaining = self.world.fakes.timers.remaining_ms()
        for key in sorted(remaining):
            self._print(f"{' '.join(key)}: {remaining[key]}")

    def do_delete(self, names: list[str], options: Options) -> None:
        group = self.world.fakes.groups[GROUP]
        try:
            group.check_deletion()
            self.world.fakes.journal.append(group.tombstones())
        except CoordinatorError as error:
            self._print(f"< delete {error.code.name}")

    def do_reload(self, names: list[str], options: Options) -> None:
        self.world.load()
        self.world.classic.on_loaded()
        self.world.consumer.on_loaded()

    def do_unload(self, names: list[str], options: Options) -> None:
        self.world.classic.on_unloaded()
        self.world.consumer.on_unloaded()

    # Printing and reading.

    def _print(self, text: str) -> None:
        for name, member_id in self.ids.items():
            if member_id != name and len(member_id) > len(name):
                text = text.replace(member_id, f"{name}*")
        self.output.append(text)

    def _show_group(self) -> None:
        group = self.world.fakes.groups.get(GROUP)
        match group:
            case ConsumerGroup():
                text = f"{group.state_name} epoch={group.group_epoch}/{group.assignment_epoch}"
            case ClassicGroup():
                text = f"classic {group.state_name} generation={group.generation}"
            case _:
                text = "no group"
        if text != self.shown:
            self.shown = text
            self._print(f"= {text}")

    def _send(self, name: str, request: Message, version: int) -> Any:
        encode(request, version)
        response = self.world.send(request, version, name)
        if response is None:
            self._print(f"< {name} waits")
            return None
        response = decode(type(response), version, encode(response, version))
        text = printed_response(self.ids.get(name, name), response, self.names)
        if getattr(response, "member_id", None):
            self.ids[name] = response.member_id
        self._print(text.replace(f"< {self.ids.get(name, name)}", f"< {name}"))
        return response

    def _topic_name(self, topic_id: UUID) -> str:
        known = [name for name, each in self.topic_ids.items() if each == topic_id]
        return known[0] if known else f"?{topic_id}"

    def _hash_name(self, metadata_hash: int) -> str:
        topics = self.world.shard.topics
        existing = [name for name in sorted(self.topic_ids) if topics.find(name) is not None]
        hashes = {name: topic_hash(topics.find(name)) for name in existing}
        for size in range(len(existing) + 1):
            for chosen in combinations(existing, size):
                if group_hash({name: hashes[name] for name in chosen}) == metadata_hash:
                    return ",".join(chosen) or "-"
        return f"?{metadata_hash}"

    def _group(self) -> ConsumerGroup:
        group = self.world.fakes.groups[GROUP]
        assert isinstance(group, ConsumerGroup)
        return group

    def _member_id(self, name: str, options: Options) -> str:
        if "id" in options:
            return "" if options["id"] == "-" else options["id"]
        return self.ids.get(name, name)

    def _classic_id(self, name: str, options: Options) -> str:
        if "id" in options:
            return "" if options["id"] == "-" else options["id"]
        return self.ids.get(name, "")

    def _partitions(self, text: str) -> list[TopicPartitions]:
        return [
            TopicPartitions(topic_id=self.topic_ids[name], partitions=numbers)
            for name, numbers in _read_partitions(text)
        ]

    def _protocol(self, text: str, owned: str) -> JoinGroupRequestProtocol:
        name, _, topics = text.partition(":")
        subscription = ConsumerProtocolSubscription(
            topics=_listed(topics),
            owned_partitions=[
                ConsumerProtocolSubscriptionTopicPartition(topic=topic, partitions=numbers)
                for topic, numbers in _read_partitions(owned)
            ],
        )
        metadata = b"\0\3" + encode(subscription, 3)
        return JoinGroupRequestProtocol(
            name=name, metadata=b"broken" if topics == "broken" else metadata
        )


def _listed(text: str) -> list[str]:
    return [] if text == "-" else text.split(",")


def _read_partitions(text: str) -> list[tuple[str, list[int]]]:
    result = []
    for topic in [] if text in ("-", "") else text.split(";"):
        name, _, parts = topic.partition(":")
        numbers: list[int] = []
        for part in parts.split(","):
            first, _, last = part.partition("-")
            numbers += range(int(first), int(last or first) + 1)
        result.append((name, numbers))
    return result
