"""Text from language models: token by token, in a loop or between the frames of one."""

from perframe.text.generation import Generation, generate
from perframe.text.names import carry_of
from perframe.text.padding import without_mask
from perframe.text.tokenizer import Characters, Coder, Tokenizer

__all__ = ["Characters", "Coder", "Generation", "Tokenizer", "carry_of", "generate", "without_mask"]
