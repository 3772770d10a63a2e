"""The benchmarks of the server compute percentiles, read metrics and count failures as they say."""

import asyncio
import math
import sys
from collections import Counter
from pathlib import Path

import pytest
from event_loops import run_async

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))  # at the end: its `training` hides nothing

from same_translations import Change, Comparison, changed_lines, compare_texts, document_text, is_chinese, spread
from serve import Row, in_turn
from serve_interference import Interference, distinct, table, take_document, take_text
from serve_load import Samples, Throughput, load, parse_metrics, percentile, waiting


def test_a_percentile_is_a_value_that_was_measured():
    values = [float(number) for number in range(100, 0, -1)]
    assert [percentile(values, share) for share in (0.5, 0.9, 0.99, 1.0)] == [50, 90, 99, 100]
    assert percentile([3.0], 0.5) == percentile([3.0], 0.99) == 3
    assert percentile([1.0, 2.0, 3.0], 0.5) == 2
    assert math.isnan(percentile([], 0.5))


def test_metrics_are_read_and_the_queue_of_either_version_is_counted():
    text = (
        "# TYPE sixfold_queue_sentences gauge\nsixfold_queue_sentences 12\nsixfold_queue_tokens 3.5e+02\n"
        'sixfold_requests_total{method="POST",route="/a b",status="200"} 2\n'
    )
    metrics = parse_metrics(text)
    assert metrics['sixfold_requests_total{method="POST",route="/a b",status="200"}'] == 2
    assert waiting(metrics) == 362
    assert waiting(parse_metrics("sixfold_queue_characters 7\n")) == 7
    assert waiting(parse_metrics("sixfold_queue_characters 0\nsixfold_cache_bytes 5\n")) == 0


def test_failures_are_counted_and_give_no_latency():
    """A server that answers 200 and 503 in turn, and closes the third connection without a response."""
    requests = 0

    async def answer(reader, writer):
        nonlocal requests
        while head := await reader.readuntil(b"\r\n\r\n"):
            await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))
            requests += 1
            if requests == 3:
                writer.close()
                return
            writer.write(b"HTTP/1.1 %d X\r\nContent-Length: 2\r\n\r\n{}" % (200 if requests % 2 else 503))

    async def main():
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            return await asyncio.to_thread(load, port, ["a", "b", "c", "d", "e"], 1)

    throughput = run_async(main())
    assert len(throughput.samples.seconds) == 2
    assert throughput.samples.failures == {"503": 2, "IncompleteReadError": 1}
    assert throughput.samples.summary()["failures"] == {"503": 2, "IncompleteReadError": 1}


def test_the_overhead_is_that_over_the_engine_in_the_same_round():
    rounds = [Throughput(rate, Samples([0.1, 0.3], Counter({"503": 1}))) for rate in (10.0, 20.0, 40.0)]
    row = Row("new", 8, rounds, [11.0, 24.0, 40.0]).to_dict()
    assert (row["rate"], row["bulk"], row["failures"]) == (20, 24, {"503": 3})
    assert row["overhead"] == pytest.approx(0.1)
    assert Row("LibreTranslate", 8, rounds, []).to_dict()["overhead"] is None


def test_the_servers_take_turns_in_being_first():
    assert list(in_turn(["a", "b"], 3)) == [(0, "a"), (0, "b"), (1, "b"), (1, "a"), (2, "a"), (2, "b")]


def test_long_texts_have_the_size_that_is_stated_and_are_valid():
    lines = iter([f"第{number}行<&" for number in range(1000)])
    assert len(take_text(lines, 100)) == 100
    document = take_document(lines, 1000)
    assert 970 < len(document) <= 1000
    assert document.decode().count("<p>") == document.decode().count("&lt;&amp;</p>\n")
    assert list(distinct(iter("aabac"))) == ["a", "b", "c"]
    with pytest.raises(SystemExit, match="expected more than"):
        take_document(lines, 10**9)


def test_what_failed_or_never_ended_is_in_the_table():
    result = Interference("old")
    result.other_address = Samples([0.5, 2.0], Counter({"503": 4}), unfinished=1)
    lines = "\n".join(table([result]))
    assert "{'503': 4}, the last without a response" in lines
    assert "the queue is empty after never" in lines
    assert result.to_dict()["other_address"]["p50"] == 500


def test_lines_are_spread_over_a_set_and_keep_their_numbers():
    lines = [str(number) for number in range(1, 11)]
    assert spread(lines, 4) == [(1, "1"), (3, "3"), (6, "6"), (8, "8")]
    assert spread(lines, None) == spread(lines, 99) == [(number, str(number)) for number in range(1, 11)]


def test_a_difference_is_named_by_its_line_and_accepted_only_if_the_batch_is_its_cause():
    result = Comparison("lines", "dev.zh", 2)
    compare_texts(result, [(3, "a"), (7, "b")], ["x", "y"], ["x", "z"])
    assert result.changes == [Change("dev.zh:7", "b", "y", "z")]
    assert not result.is_accepted
    assert "DIFFERENT" in result.line()
    result.changes = [Change("dev.zh:7", "b", "y", "z", by_batch=True)]
    assert result.is_accepted
    compare_texts(result, [(3, "a")], ["x"], [])
    assert not result.is_accepted


@pytest.mark.parametrize(("new", "expected"), [(20.04, True), (19.96, True), (20.1, False), (19.9, False)])
def test_with_the_shortlist_bleu_may_hardly_change(new, expected):
    result = Comparison("shortlist", "dev.zh", 1, [Change("dev.zh:1", "a", "x", "y")], bleu=(20.0, new))
    assert result.is_accepted is expected


def test_documents_are_compared_line_by_line():
    assert changed_lines("a\nb\nc", "a\nB\nc") == [("b", "B")]
    assert changed_lines("a\nb", "a") == [("a\nb", "a")]
    assert changed_lines("a", "a") == []
    assert document_text("猫".encode()) == "猫"
    assert is_chinese("我们 use word")
    assert not is_chinese("The word 猫 is the only Chinese one in this sentence.")
