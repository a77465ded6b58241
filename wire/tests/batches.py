"""Batches that several tests need, and a strategy for any."""

from typing import Any

import pytest
from hypothesis import strategies as st

from klamm.wire.records.batch import encode_batch_header, read_batch_header
from klamm.wire.records.codecs import Codec
from klamm.wire.records.record import RecordToBuild, build_batch

CODECS = list(Codec)
by_codec = pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name.lower())

some_bytes = st.none() | st.binary(max_size=20)
header_keys = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
timestamps = st.integers(0, 2**42)
records_to_build: st.SearchStrategy[RecordToBuild] = st.tuples(
    some_bytes, some_bytes, st.lists(st.tuples(header_keys, some_bytes), max_size=3), timestamps
)


def sample_batch(codec: int = Codec.NONE, **options: Any) -> bytes:
    """Give a batch of three records: everything set, everything null, and a long value."""
    return build_batch(
        [
            (b"key", b"value", [("h", b"1"), ("n", None)], 1_700_000_000_000),
            (None, None, [], 1_700_000_000_500),
            (b"", b"x" * 300, [("ü", b"")], 1_700_000_000_250),
        ],
        codec=codec,
        base_offset=100,
        **options,
    )


def raw_batch(payload: bytes, count: int, codec: int = Codec.NONE) -> bytes:
    """Give a batch that claims to hold count records in this payload."""
    header = read_batch_header(sample_batch())
    changed = header._replace(attributes=int(codec), record_count=count, base_offset=0)
    return encode_batch_header(changed, payload) + payload
