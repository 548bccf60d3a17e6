"""One run: gathered, locked against another, replayed from saved answers, reported, watched."""
