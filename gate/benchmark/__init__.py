"""`gate bench`: paired times of scenarios whose bits are proven equal.

setting.py what a table says; schedule.py who runs when; proof.py the bits; clock.py the timed processes; bits.py the digests that these
hand back; journal.py what was timed so far; judgement.py what pairs of times allow to say;
result.py, rendering.py the answer; command.py all of it in order.
"""
