"""What can go wrong in planning. Each error carries its data; its text says what was wrong and what to do."""

from collections.abc import Sequence


class PlannerError(Exception):
    """Base of all planning errors."""


class UnknownName(PlannerError):
    """A model, GPU, quantisation format or region that no catalogue holds."""

    def __init__(self, kind: str, name: str, matches: Sequence[str] = ()) -> None:
        self.kind = kind
        self.name = name
        self.matches = tuple(matches)
        hint = f"; close matches: {', '.join(self.matches)}" if self.matches else ""
        super().__init__(f"unknown {kind} {name!r}{hint}")


class InvalidScenario(PlannerError):
    """A field whose value cannot be used."""

    def __init__(self, field: str, value: object, allowed: str) -> None:
        self.field = field
        self.value = value
        self.allowed = allowed
        super().__init__(f"{field}: {value!r} is not allowed; give {allowed}")


class DoesNotFit(PlannerError):
    """A model that the memory cannot hold."""

    def __init__(self, what: str, needed_bytes: float, usable_bytes: float) -> None:
        self.what = what
        self.needed_bytes = needed_bytes
        self.usable_bytes = usable_bytes
        gib = 2**30
        super().__init__(
            f"{what} needs {needed_bytes / gib:.2f} GiB and {usable_bytes / gib:.2f} GiB are usable"
        )


class UnreadableModel(PlannerError):
    """A configuration, an index or a header that is not one, or says what cannot be."""

    def __init__(self, where: str, what: str) -> None:
        self.where = where
        self.what = what
        super().__init__(f"{where}: {what}")


class UnknownArchitecture(UnreadableModel):
    """A configuration that leaves open what memory and speed depend on."""

    def __init__(self, where: str, what: str, missing: Sequence[str] = ()) -> None:
        self.missing = tuple(missing)
        facts = " ".join(f"--fact {name}=VALUE" for name in self.missing)
        super().__init__(where, f"{what}; give {facts}" if facts else what)
