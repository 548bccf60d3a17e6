"""`talk`: four answers, the thresholds beside them, and options for each."""

MODEL = ("talk", "qwen3.5-35b-a3b", "--gpu", "H100 SXM", "--quant", "FP8", "--engine", "vllm")


def test_the_text_gives_four_answers_and_the_thresholds(cli):
    text = cli(*MODEL).out
    assert text.startswith("Qwen3.5 35B-A3B in FP8 on 1x H100 SXM: voice (")
    for question in ("does it fit", "work per token", "text to answer", "speech in and out"):
        assert question in text
    assert "5.9 GFLOP: 2 x 2.9 B (what a token uses), of 35.1 B" in text
    assert "smooth chat               30                    2,000" in text
    assert "* estimated, not measured" in text


def test_a_threshold_moves_the_verdict_and_is_shown(cli):
    document = cli(*MODEL, "--smooth-tokens-per-s", "500", "--json").document
    assert (document["schema"], document["verdict"]) == ("breakeven.talk/1", "chat")
    assert document["thresholds"]["smooth_tokens_per_s"] == 500.0
    assert document["reason"].startswith("smooth chat needs 500 tokens/s, here ")


def test_what_contradicts_is_one_line(cli):
    ran = cli(*MODEL, "--chat-tokens-per-s", "50")
    assert ran.code == 2
    assert ran.err.count("\n") == 1
    assert "--chat-tokens-per-s: 50.0 is not allowed; give at most the 30 of smooth_tokens_per_s" in ran.err
    ran = cli(*MODEL, "--utterance-s", "0")
    assert (ran.code, "--utterance-s: 0.0 is not allowed" in ran.err) == (2, True)
    assert cli(*MODEL, "--utterance-s", "1,5").code == 2


def test_a_model_that_does_not_fit_is_an_answer(cli):
    ran = cli("talk", "llama-3.3-70b-instruct", "--gpu", "RTX 4090")
    assert ran.code == 0
    assert "no: " in ran.out
    assert "text to answer" not in ran.out
