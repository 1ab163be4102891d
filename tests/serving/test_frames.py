"""Frames: messages come back as they were written, and only JSON is accepted."""

import asyncio
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.serving.frames import encode_frame, read_frame, receive_frame, write_frame

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(messages=st.lists(st.dictionaries(st.text(), VALUES, max_size=3), max_size=4))
def test_messages_come_back_in_order(messages: list[dict[str, object]]) -> None:
    stream = io.BytesIO()
    for message in messages:
        write_frame(stream, message)
    stream.seek(0)
    assert [read_frame(stream) for _ in messages] == messages
    assert read_frame(stream) is None


@pytest.mark.parametrize("kept", [0, 3, 4, 9])
def test_an_end_inside_a_frame_is_an_end(kept: int) -> None:
    frame = encode_frame({"text": "half of \ud800 a pair"})[:kept]
    assert read_frame(io.BytesIO(frame)) is None

    async def receive() -> object:
        stream = asyncio.StreamReader()
        stream.feed_data(frame)
        stream.feed_eof()
        return await receive_frame(stream)

    assert asyncio.run(receive()) is None


def test_a_length_beyond_reason_is_refused_before_memory_is_taken() -> None:
    with pytest.raises(ValueError, match="longer than the protocol allows"):
        read_frame(io.BytesIO(b"\xff\xff\xff\xff"))


def test_pickle_is_no_frame() -> None:
    import pickle

    content = pickle.dumps({"a": 1})
    with pytest.raises(ValueError, match=r"."):
        read_frame(io.BytesIO(len(content).to_bytes(4, "big") + content))
