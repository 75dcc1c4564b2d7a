"""Trains assets/languages: a network that tells English, German, French and Spanish apart, and its tokenizer.

`python assets/languages/train.py` needs `tokenizers` and takes some seconds. The seed is 0, so that the weights come
out the same. A sentence's tokens have vectors; their mean decides. The sentences are in sentences.txt.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

import perframe as pf

FOLDER = Path(__file__).parent
LANGUAGES = ("en", "de", "fr", "es")
WIDTH, WORDS, STEPS = 16, 600, 1500
PADDING = 0  # the token that fills short sentences


def read_sentences() -> tuple[list[str], np.ndarray]:
    lines = (FOLDER / "sentences.txt").read_text(encoding="utf-8").splitlines()
    return [line[3:] for line in lines], np.array([LANGUAGES.index(line[:2]) for line in lines])


def make_tokenizer(sentences: list[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.train_from_iterator(sentences, trainers.BpeTrainer(vocab_size=WORDS, special_tokens=["[PAD]", "[UNK]"]))
    tokenizer.enable_padding(pad_id=PADDING, pad_token="[PAD]")
    return tokenizer


def encoded(tokenizer: Tokenizer, sentences: list[str]) -> tuple[np.ndarray, np.ndarray]:
    found = tokenizer.encode_batch(sentences)
    return np.array([one.ids for one in found]), np.array([one.attention_mask for one in found], np.float32)


def train(tokens: np.ndarray, mask: np.ndarray, wanted: np.ndarray, words: int) -> tuple[np.ndarray, np.ndarray]:
    """Vectors (words, WIDTH) and weights (WIDTH, languages), by gradient descent with momentum."""
    random = np.random.default_rng(0)
    vectors = random.normal(0, 0.3, (words, WIDTH))
    weights = random.normal(0, 0.3, (WIDTH, len(LANGUAGES)))
    speeds = [np.zeros_like(vectors), np.zeros_like(weights)]
    lengths, at = mask.sum(1), np.arange(mask.shape[1])
    for _ in range(STEPS):
        size = np.minimum(random.integers(3, 16, len(wanted)), lengths)  # parts of sentences: texts may be short
        first = random.integers(0, lengths - size + 1)
        part = (at >= first[:, None]) & (at < (first + size)[:, None])
        shares = part / part.sum(1, keepdims=True)
        mean = (vectors[tokens] * shares[..., None]).sum(1)
        scores = np.exp(mean @ weights)
        error = scores / scores.sum(1, keepdims=True)
        error[np.arange(len(wanted)), wanted] -= 1
        error /= len(wanted)
        for_weights = mean.T @ error
        for_vectors = np.zeros_like(vectors)
        np.add.at(for_vectors, tokens, (error @ weights.T)[:, None] * shares[..., None])
        for speed, value, slope in zip(speeds, (vectors, weights), (for_vectors, for_weights), strict=True):
            speed *= 0.9
            speed -= 2.0 * (slope + 1e-4 * value)
            value += speed
    return vectors.astype(np.float32), weights.astype(np.float32)


def network(vectors: np.ndarray, weights: np.ndarray) -> pf.Model:
    """Token ids and their mask (sentences, tokens) to probabilities (sentences, languages)."""
    graph, F = pf.FunctionalGraph(), pf.functional
    tokens = graph.add_input(pf.DataType.INT64, ("sentences", "tokens"), "tokens")
    mask = graph.add_input(pf.DataType.FLOAT32, ("sentences", "tokens"), "mask")
    each = F.embedding(tokens, F.constant(vectors)) * F.unsqueeze(mask, 2)
    mean = F.sum(each, 1) / F.sum(mask, 1, keepdim=True)
    return graph.compile(probabilities=F.softmax(F.matmul(mean, F.constant(weights)), 1))


def main() -> None:
    sentences, wanted = read_sentences()
    tokenizer = make_tokenizer(sentences)
    tokens, mask = encoded(tokenizer, sentences)
    model = network(*train(tokens, mask, wanted, tokenizer.get_vocab_size()))
    found = pf.run(model, {"tokens": tokens, "mask": mask})["probabilities"].argmax(1)
    print(f"{(found == wanted).sum()} of {len(wanted)} sentences, {tokenizer.get_vocab_size()} tokens")
    tokenizer.save(str(FOLDER / "tokenizer.json"))
    pf.save(model, FOLDER / "languages.perframe")


if __name__ == "__main__":
    main()
