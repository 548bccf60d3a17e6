"""How sentences write numbers."""

import pytest

from planner.answers.words import tokens_text


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (1.0, "1"),
        (940_000.0, "940,000"),
        (1e6, "1.0 million"),
        (999_940_000.0, "999.9 million"),
        (999_960_000.0, "1.0 billion"),  # and not 1,000.0 million
        (1e9, "1.0 billion"),
        (999_999_999_999.0, "1.0 trillion"),
    ],
)
def test_tokens_never_come_to_a_thousand_of_the_smaller_word(tokens, text):
    assert tokens_text(tokens) == text
