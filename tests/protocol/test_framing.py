"""Frames come out whole and in order, however their bytes arrive and whatever stands between them."""

from __future__ import annotations

import itertools
import time
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crewlog.protocol.framing import MAX_HEADER, Damage, Event, Frame, FrameReader, Oversized, encode_frame

bodies = st.lists(st.binary(max_size=60), max_size=8)
cuts = st.lists(st.integers(0, 400), max_size=30)

header_lines = st.permutations(
    ["{length}", "Content-Type: application/vscode-jsonrpc; charset=utf-8", "X-Unknown: content of any length: 5", "content-TYPE:x"]
)
length_lines = st.sampled_from(
    ["Content-Length: {}", "content-length:{}", "CONTENT-LENGTH :\t{}", "Content-Length:   {}  ", "Content-Length: 00{}"]
)


def in_pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({cut for cut in cuts if cut < len(data)} | {0, len(data)})
    return [data[start:end] for start, end in itertools.pairwise(places)]


def events(data: bytes, cuts: list[int], limit: int = 1_000) -> list[Event]:
    reader = FrameReader(limit)
    return [event for piece in in_pieces(data, cuts) for event in reader.feed(piece)]


def frames(found: list[Event]) -> list[bytes]:
    return [event.body for event in found if isinstance(event, Frame)]


@given(bodies, cuts)
def test_frames_come_out_whole_however_they_are_cut(bodies: list[bytes], cuts: list[int]) -> None:
    assert events(b"".join(map(encode_frame, bodies)), cuts) == [Frame(body) for body in bodies]


@given(bodies)
def test_frames_come_out_whole_byte_by_byte(bodies: list[bytes]) -> None:
    data = b"".join(map(encode_frame, bodies))
    assert events(data, list(range(len(data)))) == [Frame(body) for body in bodies]


@given(st.lists(st.tuples(st.binary(max_size=30), header_lines, length_lines, st.sampled_from(["\r\n", "\n"])), max_size=5), cuts)
def test_headers_in_any_case_and_order(messages: list[tuple[bytes, list[str], str, str]], cuts: list[int]) -> None:
    data = b""
    for body, lines, length, line_end in messages:
        head = line_end.join(lines).replace("{length}", length.format(len(body)))
        data += (head + line_end * 2).encode() + body
    assert events(data, cuts) == [Frame(body) for body, *_ in messages]


fragments = st.lists(
    st.one_of(
        st.binary(max_size=20),
        st.sampled_from(
            [
                b"Content-Length: 5\r\n\r\nhello",
                b"Content-Length: 5\r\n\r\nhel",
                b"Content-Length: 9\r\n\r\nhello",
                b"Content-Length: ",
                b"content-length",
                b"Content-Length     ",
                b": 3",
                b"-1",
                b"9" * 30,
                b"999999",
                b"\r\n",
                b"\n",
                b"\n\n",
                b"\r\n\r\n",
                b"{",
                b'{"a": 1}',
                b"X: y\r\n",
                b"no colon\r\n",
                b"x" * 50,
            ]
        ),
    ),
    max_size=14,
).map(b"".join)


@settings(max_examples=1_500)
@given(fragments, cuts)
def test_the_way_the_bytes_arrive_changes_no_frame(data: bytes, cuts: list[int]) -> None:
    assert frames(events(data, cuts)) == frames(events(data, []))


@settings(max_examples=1_500)
@given(fragments, cuts)
def test_a_frame_is_never_made_of_anything_but_the_bytes_after_its_header(data: bytes, cuts: list[int]) -> None:
    at = 0
    for body in frames(events(data, cuts)):
        while True:
            at = data.index(body, at)
            before = data[:at].lower()
            head = before[before.rindex(b"content-length") :] if b"content-length" in before else b""
            if head.endswith((b"\n\n", b"\n\r\n", b"\r\n\r\n")) and int(head.split(b":")[1].split(b"\n")[0]) == len(body):
                break
            at += 1
        at += len(body)


@settings(max_examples=1_000)
@given(st.binary(max_size=80).filter(lambda noise: b"content-length" not in noise.lower()), bodies.filter(bool), cuts)
def test_after_noise_the_next_frame_is_found(noise: bytes, bodies: list[bytes], cuts: list[int]) -> None:
    found = events(noise + b"".join(map(encode_frame, bodies)), cuts)
    assert frames(found) == bodies


@pytest.mark.parametrize("kind", ["{", "no colon here\n", "X: y\r\n", "x", "\r\n", "content-length", "Content-Length: 1\n"])
def test_a_megabyte_of_noise_is_passed_over_quickly(kind: str) -> None:
    noise = kind.encode() * ((1 << 20) // len(kind))
    reader = FrameReader()
    start = time.process_time()
    for at in range(0, len(noise), 1 << 16):
        reader.feed(noise[at : at + (1 << 16)])
    reader.feed(b"\r\n\r\n" * 3)
    found = [event for _ in range(3) for event in reader.feed(encode_frame(b'{"after":"all"}'))]
    assert time.process_time() - start < 20
    assert frames(found)[-1] == b'{"after":"all"}'


def test_a_client_that_counts_characters_is_understood_again_at_its_next_message() -> None:
    body = '{"text":"éééé"}'
    sloppy = f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
    found = events(sloppy + encode_frame(b"{}"), [])
    assert found[0] == Frame(body.encode()[: len(body)])
    assert isinstance(found[1], Damage)
    assert found[2:] == [Frame(b"{}")]


def test_a_body_shorter_than_announced_costs_the_next_message_and_no_more() -> None:
    found = events(b"Content-Length: 12\r\n\r\n{}" + encode_frame(b'{"lost": 1}') + encode_frame(b"{}"), [])
    assert frames(found)[-1] == b"{}"
    assert any(isinstance(event, Damage) for event in found)


@pytest.mark.parametrize(
    "header",
    [
        "Content-Length: -1",
        "Content-Length: +5",
        "Content-Length: 5.0",
        "Content-Length: 0x5",
        "Content-Length: ٥",
        "Content-Length:",
        "Content-Length: 5 5",
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: 999999999999",
        "Content-Length: 99999999999999",
        "Content-Length: " + "9" * 5_000,
        "Content-Type: text",
        "X: " + "y" * MAX_HEADER,
    ],
)
def test_a_wrong_header_is_told_and_passed_over(header: str) -> None:
    found = events(f"{header}\r\n\r\n".encode() + encode_frame(b"{}"), [], limit=1 << 41)
    if header == "Content-Length: 999999999999":
        assert found == []  # large, but it may come
    else:
        assert isinstance(found[0], Damage)
        assert found[-1] == Frame(b"{}")


def test_a_doubled_header_that_agrees_is_no_fault() -> None:
    assert events(b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", []) == [Frame(b"{}")]


@given(st.integers(1_001, 5_000), cuts)
def test_a_body_over_the_limit_is_passed_over_and_told_once(size: int, cuts: list[int]) -> None:
    data = encode_frame(b"{}") + encode_frame(b"x" * size) + encode_frame(b"[]")
    assert events(data, cuts) == [Frame(b"{}"), Oversized(size), Frame(b"[]")]


def test_a_body_over_the_limit_is_not_held_in_memory() -> None:
    reader = FrameReader(limit=1_000)
    piece = b"x" * (1 << 16)
    tracemalloc.start()
    try:
        assert reader.feed(b"Content-Length: %d\r\n\r\n" % (len(piece) * 2_000)) == [Oversized(len(piece) * 2_000)]
        for _ in range(2_000):
            assert reader.feed(piece) == []
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert reader.feed(encode_frame(b"{}")) == [Frame(b"{}")]


def test_a_length_is_not_trusted_before_its_bytes_are_there() -> None:
    reader = FrameReader(limit=1 << 39)
    tracemalloc.start()
    try:
        assert reader.feed(b"Content-Length: %d\r\n\r\n{" % (1 << 38)) == []
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_whether_the_bytes_end_inside_a_message_is_known() -> None:
    reader = FrameReader()
    assert not reader.pending
    for piece in (b"Content-", b"Length: 2\r\n", b"\r\n", b"{"):
        reader.feed(piece)
        assert reader.pending
    assert reader.feed(b"}\r\n") == [Frame(b"{}")]
    assert not reader.pending


def test_many_frames_in_one_read_cost_what_they_are() -> None:
    """Twice the frames, twice the work: no copying of the rest for each."""

    def work(count: int) -> float:
        data = encode_frame(b'{"jsonrpc":"2.0"}') * count
        best = float("inf")
        for _ in range(5):
            start = time.process_time()
            assert len(FrameReader().feed(data)) == count
            best = min(best, time.process_time() - start)
        return best

    assert work(40_000) < 20 * work(4_000) + 0.05


@pytest.mark.parametrize("size", [1 << 20, 8 << 20])
def test_a_large_body_in_small_pieces_is_joined_once(size: int) -> None:
    body = b"x" * size
    data = encode_frame(body)
    reader = FrameReader()
    found = [event for at in range(0, len(data), 4_096) for event in reader.feed(data[at : at + 4_096])]
    assert frames(found) == [body]


@given(bodies, st.sampled_from(["\r\n", "\n", "\n\n\n", "\r\n\r\n"]), cuts)
def test_blank_lines_between_messages_are_no_damage(bodies: list[bytes], blank: str, cuts: list[int]) -> None:
    data = blank.encode() + b"".join(encode_frame(body) + blank.encode() for body in bodies)
    assert events(data, cuts) == [Frame(body) for body in bodies]
