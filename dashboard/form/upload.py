"""A model of one's own on the Size page: the file that a person puts there, and what it says."""

from dataclasses import dataclass, replace
from typing import Protocol

import streamlit as st

from dashboard import parts
from planner.catalogues.quants import find_quant
from planner.configs import ModelReading, read_config, read_config_text
from planner.errors import UnreadableModel
from planner.gguf import read_gguf
from planner.reading.gguf import HeaderTooShort, parse_gguf
from planner.scenario import Scenario
from planner.workload import Engine, Workload

# Of a file that is put here in part, no more than its start is there: nothing is held against its end.
_ANY_SIZE = 2**50
_KEPT = "_model_reading"


class UploadedFile(Protocol):
    """What Streamlit hands over."""

    name: str
    file_id: str

    def getvalue(self) -> bytes:
        """Return the content."""
        ...


@dataclass(frozen=True, slots=True)
class Uploaded:
    """A model that was put there."""

    reading: ModelReading

    def workload(self, scenario: Scenario) -> Workload:
        """Return what is asked, of this model, in the format that its file holds where it is quantised."""
        quant = find_quant(self.reading.quant or scenario.quant)
        work = scenario.workload(self.reading.model, quant)
        is_auto = self.reading.is_gguf and scenario.engine == "auto"
        return replace(work, engine=Engine.LLAMA_CPP) if is_auto else work


def read(name: str, content: bytes) -> ModelReading:
    """
    Read a `config.json`, or the start of a `.gguf` file.

    Raises:
        UnreadableModel: if it is neither.
        UnknownArchitecture: if it leaves facts open.
    """
    if name.endswith(".gguf"):
        try:
            return read_gguf([parse_gguf(content, name, _ANY_SIZE)])
        except HeaderTooShort as error:
            what = f"its header goes on behind these {len(content):,} bytes; give more of its start"
            raise UnreadableModel(name, what) from error
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableModel(name, "not UTF-8 text") from error
    return read_config(read_config_text(text, name), name=name.removesuffix(".json"), where=name)


def uploaded() -> Uploaded | None:
    """Draw the place for a file, and return the model in it; None where there is none."""
    with st.expander("A model of your own"):
        file: UploadedFile | None = st.file_uploader(
            "Its config.json, or the start of its .gguf file",
            type=["json", "gguf"],
            key="model_file",
            help="It is read, not kept. The header of a .gguf file is enough: head -c 16000000 model.gguf",
        )
    if file is None:
        st.session_state.pop(_KEPT, None)
        return None
    kept = st.session_state.get(_KEPT)
    if kept is None or kept[0] != file.file_id:
        try:
            kept = (file.file_id, read(file.name, file.getvalue()))
        except UnreadableModel as error:
            st.error(parts.plain(error))
            return None
        st.session_state[_KEPT] = kept
    reading = kept[1]
    st.caption(parts.plain(_said(reading)))
    return Uploaded(reading)


def _said(reading: ModelReading) -> str:
    """Say which model is looked at, and what is left out for it."""
    held = f", in {reading.quant} as its file holds it" if reading.quant else ""
    return (
        f"This is {reading.model.name} from your file{held}, not the model chosen above. Prices, APIs and "
        "measurements are those of the catalogue's models and are left out."
    )
