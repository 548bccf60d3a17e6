"""`evidence`, and the measurements beside an estimate of `size`."""

LLAMA = "llama-3.1-8b-instruct"


def test_nearest_measurements_with_distance_and_source(cli):
    ran = cli("evidence", LLAMA, "--gpu", "RTX 4090", "--limit", "4", "--json")
    document = ran.document
    assert ran.code == 0
    assert document["schema"] == "breakeven.evidence/1"
    assert document["asked"]["gpu"] == "RTX 4090"
    assert len(document["results"]) == 4
    distances = [row["distance"] for row in document["results"]]
    assert distances == sorted(distances)
    for row in document["results"]:
        assert row["source"]
        assert row["measured"].keys() == row["estimated"].keys()


def test_without_a_machine_all_of_the_model(cli):
    document = cli("evidence", "qwen3-32b", "--json", "--limit", "1000").document
    assert document["asked"] is None
    assert document["found"] == len(document["results"]) > 40
    assert {row["model"] for row in document["results"]} == {"qwen3-32b"}
    assert "distance" not in document["results"][0]


def test_text_says_what_differs_and_where_it_comes_from(cli):
    text = cli("evidence", LLAMA, "--gpu", "RTX 4090", "--limit", "1").out
    assert "context 4,096 instead of 8,192 tokens" in text
    assert "decode 111" in text
    assert "XiongjieDai" in text
    assert "* estimated, not measured" in text


def test_a_model_without_measurements_is_an_answer(cli):
    ran = cli("evidence", "lfm3-1.7b")
    assert ran.code == 0
    assert "Nothing was measured" in ran.out
    assert cli("evidence", "lfm3-1.7b", "--json").document["found"] == 0


def test_a_limit_below_one_is_refused(cli):
    ran = cli("evidence", LLAMA, "--limit", "0")
    assert ran.code == 2
    assert "--limit: 0 is not allowed" in ran.err


def test_size_shows_the_nearest_measurements_beside_the_estimate(cli):
    asked = ("size", LLAMA, "--gpu", "RTX 4090", "--context", "4096")
    document = cli(*asked, "--json").document
    assert len(document["evidence"]) == 3
    first = document["evidence"][0]
    assert first["is_same"]
    assert first["measured"] == {"decode_tokens_per_s": 110.66}
    assert document["speed"]["source"] == "estimated"
    text = cli(*asked).out
    assert "measured, this very configuration and its neighbours" in text
    assert "decode 111" in text


def test_size_shows_no_measurement_that_is_far_away(cli):
    asked = ("size", "qwen3-coder-480b-a35b", "--gpu", "B200", "--gpus", "2")
    document = cli(*asked, "--json").document
    assert all(one["distance"] > 1.0 for one in document["evidence"])
    assert len(document["evidence"]) == 3
    text = cli(*asked).out
    assert "nothing near it was measured; `breakeven evidence` lists what is nearest" in text
    assert "qwen3-coder-next" not in text
    near = ("size", LLAMA, "--gpu", "RTX 4090", "--context", "4096")
    shown = sum(one["distance"] <= 1.0 for one in cli(*near, "--json").document["evidence"])
    table = cli(*near).out.split("measured, this very")[1].split("\n\n")[0]
    assert len(table.splitlines()) == 3 + shown


def test_size_names_what_the_nearest_measurement_did_not_have(cli):
    asked = ("size", LLAMA, "--gpu", "RTX 4090", "--context", "4096", "--kv-dtype", "q4_0")
    first = cli(*asked, "--json").document["evidence"][0]
    assert first["is_same"] is False
    assert first["differences"] == ["cache in fp16 instead of q4_0"]
    text = cli(*asked).out
    assert "this very configuration" not in text
    assert "- 0.19: cache in fp16 instead of q4_0" in text
