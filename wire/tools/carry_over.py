"""Carry the facts of Kafka's message descriptors over into declarations.

Run by hand when a new Kafka version is followed: `python wire/tools/carry_over.py DIRECTORY`,
where DIRECTORY holds the descriptors (*.json, in any folders below it). It rewrites
wire/messages/ and wire/api_table.py. Names, types, versions, tags and defaults are carried over;
the prose of the descriptors is not.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

WIRE = Path(__file__).resolve().parent.parent
LINE_LENGTH = 100
OPEN_END = 32767

Node = dict[str, Any]
Range = tuple[int, int]

PYTHON_TYPES = {
    "bool": "bool",
    "float64": "float",
    "string": "str",
    "bytes": "bytes",
    "uuid": "UUID",
    **dict.fromkeys(("int8", "int16", "int32", "int64", "uint16", "uint32"), "int"),
}
SCHEMA_NAMES = {"bool": "bool_", "bytes": "bytes_"}
IMPLICIT_DEFAULTS = {"bool": "False", "float64": "0.0", "string": '""', "bytes": 'b""'}

# Records that are not sent but stored: which module declares them, by a pattern of their name.
STORED_MODULES = (
    (r"(Legacy)?OffsetCommit(Key|Value)|GroupMetadata(Key|Value)", "classic_group"),
    (r"ConsumerGroup\w+(Key|Value)", "consumer_group"),
    (r"ShareGroup\w+(Key|Value)", "share_group"),
    (r"StreamsGroup\w+(Key|Value)", "streams_group"),
    (r"Share(Snapshot|Update)(Key|Value)", "share_state"),
    (r"TransactionLog(Key|Value)", "transaction_log"),
    (r"ConsumerProtocol\w+", "consumer_protocol"),
    (r"QuorumStateData", "quorum_state"),
    (r"DefaultPrincipalData", "principal"),
    (
        r"ControlRecordTypeSchema|EndTxnMarker|LeaderChangeMessage|KRaftVersionRecord"
        r"|Snapshot(Header|Footer)Record|VotersRecord",
        "control",
    ),
    (r"\w+Record", "metadata"),
)
STORED_TITLES = {
    "classic_group": "Classic groups and committed offsets, as `__consumer_offsets` stores them.",
    "consumer_group": "Consumer groups (KIP-848), as `__consumer_offsets` stores them.",
    "share_group": "Share groups (KIP-932), as `__consumer_offsets` stores them.",
    "streams_group": "Streams groups (KIP-1071), as `__consumer_offsets` stores them.",
    "share_state": "The progress of share groups, as `__share_group_state` stores it.",
    "transaction_log": "Transactions, as `__transaction_state` stores them.",
    "consumer_protocol": "What members of a classic consumer group tell each other.",
    "quorum_state": "The vote of a node, as the file `quorum-state` keeps it.",
    "principal": "A principal, as a forwarded request carries it.",
    "control": "The bodies of control records.",
    "metadata": "Topics, partitions, brokers and configs, as `__cluster_metadata` stores them.",
}


TABLE_HEAD = '''"""Every API: key, module, name, first and last version, flexible from, listeners.

Written by tools/carry_over.py: plain data, so that importing it costs next to nothing.
The last version is the last stable one; a newer unstable one is declared, but not listed.
"""

BROKER = ("broker",)
CONTROLLER = ("controller",)
BOTH = ("broker", "controller")

API_TABLE: tuple[tuple[int, str, str, int, int, int | None, tuple[str, ...]], ...] = (
'''


def snake_case(name: str) -> str:
    """Turn `ISRNodes` into `isr_nodes` and `TopicId` into `topic_id`."""
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


def read_range(text: str) -> Range:
    """Read "3", "3+", "3-13" or "none"."""
    if text == "none":
        return 0, -1
    if text.endswith("+"):
        return int(text[:-1]), OPEN_END
    first, _, last = text.partition("-")
    return int(first), int(last or first)


def common(one: Range, other: Range) -> Range:
    return max(one[0], other[0]), min(one[1], other[1])


def is_empty(versions: Range) -> bool:
    return versions[0] > versions[1]


def read_descriptors(directory: Path) -> list[Node]:
    """Read every descriptor that has a valid version; whole-line // comments are not JSON."""
    descriptors = []
    for path in sorted(directory.rglob("*.json")):
        lines = path.read_text(encoding="utf-8").splitlines()
        text = "\n".join(line for line in lines if not line.lstrip().startswith("//"))
        descriptor = json.loads(text)
        if descriptor["validVersions"] != "none":
            descriptors.append(descriptor)
    return descriptors


def facts_of(fields: list[Node]) -> str:
    """Give what two structs must share to be one class: everything but the prose."""

    def strip(node: Node) -> Node:
        facts = {key: value for key, value in node.items() if key not in ("about", "ignorable")}
        if "fields" in facts:
            facts["fields"] = [strip(child) for child in facts["fields"]]
        return facts

    return json.dumps([strip(node) for node in fields], sort_keys=True)


class ModuleWriter:
    """Collects the classes of one module, then prints it."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.classes: list[str] = []
        self.printed: set[str] = set()
        self.renamed: dict[tuple[str, str], str] = {}
        self.shared: set[str] = set()
        self.imports = {"Message"}

    def settle_names(self, messages: list[tuple[Node, str]]) -> None:
        """Give structs of equal name but unequal fields the prefix of their message."""
        seen: dict[str, list[tuple[str, str, str]]] = {}
        for message, prefix in messages:
            for name, fields in structs_of(message):
                seen.setdefault(name, []).append((message["name"], prefix, facts_of(fields)))
        for name, uses in seen.items():
            if len({facts for _, _, facts in uses}) == 1:
                if len(uses) > 1:
                    self.shared.add(name)
            else:
                for message_name, prefix, _ in uses:
                    self.renamed[message_name, name] = prefix + name

    def add_message(self, message: Node) -> None:
        valid = read_range(message["validVersions"])
        shared = {node["name"]: node["fields"] for node in message.get("commonStructs", ())}
        lines = self.field_lines(message, message["fields"], valid, shared)
        options = [f'versions="{message["validVersions"]}"']
        if "apiKey" in message:
            options.insert(0, f"api_key={message['apiKey']}")
        if message["flexibleVersions"] != "none":
            options.append(f'flexible="{message["flexibleVersions"]}"')
        head = f"class {message['name']}(Message, {', '.join(options)}):"
        self.classes.append("\n".join([head, *lines]))

    def add_struct(
        self, message: Node, name: str, fields: list[Node], valid: Range, shared: dict[str, Any]
    ) -> str:
        class_name = self.renamed.get((message["name"], name), name)
        if class_name not in self.printed:
            self.printed.add(class_name)
            # A struct that is named in several places exists in all versions of all of them.
            if class_name in self.shared:
                valid = (0, OPEN_END)
            elif name in shared:
                valid = read_range(message["validVersions"])
            lines = self.field_lines(message, fields, valid, shared)
            self.imports.add("Struct")
            self.classes.append("\n".join([f"class {class_name}(Struct):", *lines]))
        return class_name

    def field_lines(
        self, message: Node, fields: list[Node], around: Range, shared: dict[str, Any]
    ) -> list[str]:
        lines = []
        for node in fields:
            versions = node["versions"] if "versions" in node else node["taggedVersions"]
            present = common(read_range(versions), around)
            if is_empty(present):
                print(f"not carried over: {message['name']} {node['name']}, gone since {versions}")
                continue
            lines.extend(self.field_line(message, node, versions, present, around, shared))
        return lines or ["    pass"]

    def field_line(
        self, message: Node, node: Node, versions: str, present: Range, around: Range, shared: Any
    ) -> list[str]:
        is_array = node["type"].startswith("[]")
        kind = node["type"].removeprefix("[]")
        nullable = node.get("nullableVersions", "none")
        may_be_null = not is_empty(common(read_range(nullable), present))
        schema_name, python_type = self.type_names(message, node, kind, present, shared)
        arguments = [schema_name]
        if present != around:
            arguments.append(f'"{versions}"')
        if may_be_null:
            arguments.append(f'nullable="{nullable}"')
        if "tag" in node:
            arguments.append(f"tag={node['tag']}")
            if node["taggedVersions"] != versions:
                arguments.append(f'tagged="{node["taggedVersions"]}"')
        default = default_text(node, kind, is_array)
        if default:
            arguments.append(f"default={default}")
        if "flexibleVersions" in node:
            arguments.append(f'flexible="{node["flexibleVersions"]}"')
        annotation = f"list[{python_type}]" if is_array else python_type
        if may_be_null or default == "None":
            annotation += " | None"
        function = "array" if is_array else "field"
        self.imports.add(function)
        start = f"    {snake_case(node['name'])}: {annotation} = {function}("
        line = f"{start}{', '.join(arguments)})"
        if len(line) <= LINE_LENGTH:
            return [line]
        return [start, f"        {', '.join(arguments)}", "    )"]

    def type_names(
        self, message: Node, node: Node, kind: str, present: Range, shared: dict[str, Any]
    ) -> tuple[str, str]:
        if kind == "records":
            name = "Records" if message["type"] == "request" else "RecordsSlice"
            self.imports.update((name, "records"))
            return "records", name
        if kind in PYTHON_TYPES:
            schema_name = SCHEMA_NAMES.get(kind, kind)
            self.imports.add(schema_name)
            return schema_name, PYTHON_TYPES[kind]
        fields = node.get("fields") or shared[kind]
        class_name = self.add_struct(message, kind, fields, present, shared)
        return class_name, class_name

    def text(self) -> str:
        body = "\n\n\n".join(self.classes) + "\n"
        lines = [f'"""{self.title}"""', ""]
        if re.search(r"\bUUID\b", body):
            lines += ["from uuid import UUID", ""]
        names = sorted(self.imports, key=import_order)
        line = f"from klamm.wire.schema import {', '.join(names)}"
        if len(line) > LINE_LENGTH:
            line = "\n".join(
                ["from klamm.wire.schema import (", *(f"    {name}," for name in names), ")"]
            )
        return "\n".join([*lines, line, "", "", body])


def import_order(name: str) -> tuple[bool, str, int]:
    """Sort as ruff does: classes first, and int8 before int16."""
    digits = re.sub(r"\D", "", name)
    return name.islower(), name.rstrip("0123456789"), int(digits or 0)


def structs_of(message: Node) -> list[tuple[str, list[Node]]]:
    """List the structs that a message declares, inner ones too."""
    found: list[tuple[str, list[Node]]] = []

    def walk(fields: list[Node]) -> None:
        for node in fields:
            if "fields" in node:
                found.append((node["type"].removeprefix("[]"), node["fields"]))
                walk(node["fields"])

    walk(message["fields"])
    for shared in message.get("commonStructs", ()):
        found.append((shared["name"], shared["fields"]))
        walk(shared["fields"])
    return found


def default_text(node: Node, kind: str, is_array: bool) -> str:
    """Give the default as Python text, or nothing where it is the type's own.

    Only the text "null" makes null the default: Kafka reads a bare null as no default at all.
    """
    if node.get("default") is None:
        return ""
    text = str(node["default"])
    if text == "null":
        return "None" if kind != "records" else ""
    if is_array:
        return ""
    if kind == "bool":
        text = text.capitalize()
    elif kind == "string":
        text = f'"{text}"'
    elif text.startswith("0x"):
        text = f"0x{text[2:].upper()}"
    return "" if text == IMPLICIT_DEFAULTS.get(kind, "0") else text


def versions_text(descriptor: Node) -> str:
    first, last = read_range(descriptor["validVersions"])
    text = f"version {first}" if first == last else f"versions {first}-{last}"
    flexible = descriptor["flexibleVersions"]
    return text + (f", flexible from {flexible[:-1]}" if flexible != "none" else ", not flexible")


def write_apis(descriptors: list[Node]) -> list[str]:
    """Write one module for each API and give the rows of the table of APIs."""
    pairs: dict[int, dict[str, Node]] = {}
    for descriptor in descriptors:
        if descriptor["type"] in ("request", "response"):
            pairs.setdefault(descriptor["apiKey"], {})[descriptor["type"]] = descriptor
    rows = []
    for key, pair in sorted(pairs.items()):
        request, response = pair["request"], pair["response"]
        name = request["name"].removesuffix("Request")
        module = snake_case(name)
        writer = ModuleWriter(f"{name} (API key {key}), {versions_text(request)}.")
        writer.settle_names([(request, "Request"), (response, "Response")])
        writer.add_message(request)
        writer.add_message(response)
        (WIRE / "messages" / f"{module}.py").write_text(writer.text(), encoding="utf-8")
        first, last = read_range(request["validVersions"])
        if request.get("latestVersionUnstable"):
            last -= 1
        flexible = request["flexibleVersions"]
        flexible_from = "None" if flexible == "none" else flexible.removesuffix("+")
        listeners = "BOTH" if len(request["listeners"]) == 2 else request["listeners"][0].upper()
        rows.append(
            f'    ({key}, "{module}", "{name}", {first}, {last}, {flexible_from}, {listeners}),'
        )
    return rows


def write_stored(descriptors: list[Node]) -> None:
    """Write the modules of the records that are stored rather than sent."""
    modules: dict[str, list[Node]] = {}
    for descriptor in descriptors:
        if descriptor["type"] not in ("request", "response", "header"):
            name = descriptor["name"]
            module = next(m for pattern, m in STORED_MODULES if re.fullmatch(pattern, name))
            modules.setdefault(module, []).append(descriptor)
    for module, members in modules.items():
        members.sort(key=lambda node: (node.get("apiKey", 0), node["name"]))
        writer = ModuleWriter(STORED_TITLES[module])
        writer.settle_names(
            [(node, re.sub("(Value|Record|Key)$", "", node["name"])) for node in members]
        )
        for node in members:
            writer.add_message(node)
        path = WIRE / "messages" / "stored" / f"{module}.py"
        path.write_text(writer.text(), encoding="utf-8")


def main(directory: Path) -> None:
    descriptors = read_descriptors(directory)
    (WIRE / "messages" / "stored").mkdir(exist_ok=True)
    rows = write_apis(descriptors)
    write_stored(descriptors)
    writer = ModuleWriter("Request and response headers; header.py reads and writes them by hand.")
    for descriptor in descriptors:
        if descriptor["type"] == "header":
            writer.add_message(descriptor)
    (WIRE / "messages" / "header.py").write_text(writer.text(), encoding="utf-8")
    table = TABLE_HEAD + "\n".join(rows) + "\n)\n"
    (WIRE / "api_table.py").write_text(table, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
