"""Collections in the file formats of CLEF-IP and INEX, generated with effects of known size.

The real collections are licensed, or too large to ship. These have their layout, so that a paper's protocol runs on
them from the paper's own kinds of files. Each plants the effect that its papers report; a protocol that works must
find it.

    python -m tests.support.lookalikes FOLDER [--size large] [--seed 2] [--control]
    python -m tests.support.lookalikes.effects FOLDER

The second command prints what plain searches find in the collections that the first one wrote.
"""
