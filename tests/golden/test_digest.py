"""Digests of leaves and roots of phases."""

from __future__ import annotations

import numpy as np
import pytest
import xxhash

from golden import digest
from golden.leaf import Leaf

LEAVES = (Leaf("p", "b", "tensor", "uint8", (1,)), Leaf("p", "a", "tensor", "uint8", (1,)), Leaf("p", "c", "tensor", "uint8", (1,)))
ROWS = digest.of([b"x", b"y", b"y"])


def root(leaves: tuple[Leaf, ...] = LEAVES, rows: np.ndarray[tuple[int, ...], np.dtype[np.uint64]] = ROWS) -> str:
    return digest.Roots(leaves).root(rows)


def test_a_row_holds_the_high_half_first() -> None:
    """The digits are those that every xxh3-128 prints; the value of no bytes is xxHash's own test vector."""
    assert digest.text(digest.of([b""])[0]) == "99aa06d3014798d86001c324468d497f" == digest.EMPTY.hex()
    row = digest.of([b"golden"])[0]
    assert (int(row[0]) << 64) + int(row[1]) == xxhash.xxh3_128_intdigest(b"golden")
    assert digest.text(row) == xxhash.xxh3_128_hexdigest(b"golden") == digest.digest(b"golden").hex()


def test_digests_of_nothing_are_no_rows() -> None:
    assert digest.of([]).shape == (0, 2)
    assert digest.of([]).dtype == np.uint64


@pytest.mark.parametrize(
    "buffer",
    [b"abcd", bytearray(b"abcd"), memoryview(b"abcd"), np.frombuffer(b"abcd", np.uint8), np.frombuffer(b"abcd", np.uint8).reshape(2, 2)],
)
def test_every_kind_of_buffer_is_its_bytes(buffer: bytes) -> None:
    assert digest.digest(buffer) == xxhash.xxh3_128_digest(b"abcd")
    assert digest.digest(buffer) != digest.digest(b"abce")


def test_the_order_in_which_leaves_stand_does_not_move_a_root() -> None:
    """A mapping filled in another order has the same root."""
    order = [2, 0, 1]
    assert root(tuple(LEAVES[index] for index in order), ROWS[order]) == root()


def test_a_root_is_defined_by_what_stands_here() -> None:
    """Number of leaves, their lines and their digests, sorted by path: written out, so that no release changes it unseen."""
    text = b"3\na: uint8[1]\nb: uint8[1]\nc: uint8[1]\n"
    whole = text + b"".join(xxhash.xxh3_128_digest(data) for data in (b"y", b"x", b"y"))
    assert root() == xxhash.xxh3_128_hexdigest(whole)


def test_which_digest_stands_at_which_path_moves_a_root() -> None:
    """Sums and exclusive-or are blind to permutations and to repeated pairs; a root is not."""
    permuted = root(rows=digest.of([b"y", b"x", b"y"]))
    doubled = root(rows=digest.of([b"x", b"z", b"z"]))
    assert len({root(), permuted, doubled}) == 3


@pytest.mark.parametrize(
    "changed",
    [
        Leaf("p", "d", "tensor", "uint8", (1,)),
        Leaf("p", "b", "tensor", "int8", (1,)),
        Leaf("p", "b", "tensor", "uint8", (1, 1)),
        Leaf("p", "b", "tensor", "uint8", (1,), (7,)),
        Leaf("p", "b", "tensor", "uint8", (1,), None, "p/a"),
        Leaf("p", "b", "scalar", "uint8"),
    ],
)
def test_structure_moves_a_root(changed: Leaf) -> None:
    """Path, dtype, shape, layout, sharing and kind count beside the bytes."""
    assert root((changed, *LEAVES[1:])) != root()


def test_one_plan_gives_the_roots_of_many_steps() -> None:
    """What is kept between steps does not carry one step's digests into the next."""
    plan = digest.Roots(LEAVES)
    other = digest.of([b"1", b"2", b"3"])
    assert [plan.root(ROWS), plan.root(other), plan.root(ROWS)] == [root(), root(rows=other), root()]
