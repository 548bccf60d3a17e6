"""What the files of a model hold, by what it is for: exact bytes, known tensor by tensor."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredWeights:
    """
    Bytes of a model's own files. [B]

    All but the total are of what is served: without draft layers and second copies of a tied matrix.
    """

    total_bytes: int  # of all tensors
    served_bytes: int
    routed_bytes: int  # all routed experts
    embedding_bytes: int  # input embedding
    head_bytes: int  # output head; 0 where it is the embedding
    tower_bytes: int  # encoders of images and sound
    table_bytes: int  # looked up, never multiplied
    layer_bytes: tuple[int, ...]  # of each layer of the language model, in order

    @property
    def read_bytes(self) -> int:
        """What is read for every token: all but routed experts, towers, tables and single rows. [B]"""
        idle = self.routed_bytes + self.tower_bytes + self.table_bytes
        return self.served_bytes - idle - (self.embedding_bytes if self.head_bytes else 0)
