"""Tables that are measured, between their markers in a document."""

from pathlib import Path


def write_block(document: Path, name: str, text: str) -> None:
    """
    Replace what stands between the markers of a name; all else is a person's.

    A document that does not have the markers yet gets them at its end, below a heading.

    Args:
        document: The file.
        name: Of the figures.
        text: What is written between the markers.
    """
    begin, end = f"<!-- figures: {name} -->", f"<!-- end: {name} -->"
    before = document.read_text(encoding="utf-8")
    if begin not in before:
        before += f"\n## {name}\n\n{begin}\n{end}\n"
    head, _, rest = before.partition(begin)
    document.write_text(f"{head}{begin}\n{text}\n{end}{rest.partition(end)[2]}", encoding="utf-8")
