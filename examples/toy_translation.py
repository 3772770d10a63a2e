"""Chinese to English in under a minute: learn 200 sentences, save one file, translate with it on the CPU engine.

    python examples/toy_translation.py [model.safetensors]

The sentences come from a small grammar, so that those held back can be translated by what the others teach.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import Progress

from sixfold import Translator, modelfile
from sixfold.config import Config, ModelConfig, TokenizerConfig, TrainingConfig
from sixfold.files import check_output_path
from sixfold.model.transformer import EncoderDecoder, build, weights_of
from sixfold.tasks.loss import TokenLoss
from sixfold.tasks.task import Batch
from sixfold.tasks.translation_batches import pair_batch
from sixfold.text.learn import train_tokenizer
from sixfold.text.tokenizer import Tokenizer
from sixfold.training.loop import train
from sixfold.training.state import State

WHO = {"我": "I", "你": "you", "我们": "we", "他们": "they", "老师": "the teacher", "学生": "the student"}
DOES = {"爱": "love", "喜欢": "like", "学习": "study", "需要": "need", "不喜欢": "do not like", "研究": "research"}
WHAT = {
    "机器学习": "machine learning", "数学": "mathematics", "音乐": "music", "中文": "Chinese", "英语": "English",
    "历史": "history", "机器翻译": "machine translation", "注意力": "attention",
}  # fmt: skip
IS = {
    "很有趣": "interesting", "很难": "difficult", "很重要": "important", "很有用": "useful", "很美": "beautiful",
    "不难": "not difficult",
}  # fmt: skip
THIRD_PERSON = {
    "love": "loves", "like": "likes", "study": "studies", "need": "needs", "do not like": "does not like",
    "research": "researches",
}  # fmt: skip

MODEL = ModelConfig(
    d_model=96, heads=4, d_ff=192, encoder_layers=2, decoder_layers=2, norm_position="pre", dropout=0.1, max_length=64
)
TRAINING = TrainingConfig(steps=400, learning_rate=2e-3, warmup=60, schedule="cosine")


def sentences() -> list[tuple[str, str]]:
    """Return all sentences of the grammar in a fixed random order; the two of the README come first."""
    pairs = []
    for (who, subject), (does, verb), (what, thing) in itertools.product(WHO.items(), DOES.items(), WHAT.items()):
        verb = THIRD_PERSON[verb] if subject.startswith("the ") else verb
        pairs.append((who + does + what, f"{subject[0].upper()}{subject[1:]} {verb} {thing}"))
    for (what, thing), (how, quality) in itertools.product(WHAT.items(), IS.items()):
        pairs.append((what + how, f"{thing[0].upper()}{thing[1:]} is {quality}"))
    examples = [pair for pair in pairs if pair[0] in ("我爱机器学习", "机器学习很有趣")]
    rest = [pair for pair in pairs if pair not in examples]
    random.Random(1).shuffle(rest)
    return examples + rest


def batches(pairs: list[tuple[list[int], list[int]]], shape: ModelConfig, seed: int) -> Iterator[list[Batch]]:
    """Yield steps of 50 pairs without end, in a new order for each epoch."""
    order = random.Random(seed)
    while True:
        mixed = order.sample(pairs, len(pairs))
        for first in range(0, len(mixed), 50):
            yield [pair_batch(mixed[first : first + 50], shape)]


def learn(pairs: list[tuple[str, str]]) -> tuple[Config, Tokenizer, EncoderDecoder]:
    tokenizer = train_tokenizer(itertools.chain(*pairs), TokenizerConfig(vocab=480))
    config = Config(tokenizer.fit(MODEL), TokenizerConfig(vocab=480), TRAINING)
    model = build(config.model, TRAINING.seed)
    assert isinstance(model, EncoderDecoder)
    ids = [(tokenizer.encode(source), tokenizer.encode(target)) for source, target in pairs]
    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("learning", total=TRAINING.steps)
        state = State(model, TRAINING, TokenLoss(TRAINING.label_smoothing))
        for metrics in train(state, batches(ids, config.model, TRAINING.seed), config.model, TRAINING):
            bar.update(task, advance=1, description=f"learning (loss {metrics.loss:.2f})")
    return config, tokenizer, model.eval()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", type=Path, help="where to keep the model file")
    parser.add_argument("--pairs", help="only write the sentences, as NAME.zh and NAME.en")
    parser.add_argument("--shout", action="store_true", help="write them as shouts, which a model can be tuned to")
    args = parser.parse_args()
    if args.pairs:
        for side, language in enumerate(("zh", "en")):
            lines = [f"{pair[side].upper()}！" if args.shout else pair[side] for pair in sentences()]
            text = "".join(f"{line}\n" for line in lines)
            Path(f"{args.pairs}.{language}").write_text(text, encoding="utf-8")
        return
    keep = args.model
    if keep is not None:
        check_output_path(keep)
    torch.set_num_threads(1)  # matrices this small gain nothing from more, and suffer when the cores are busy
    started = time.perf_counter()
    pairs = sentences()
    taught, held_back = pairs[:200], pairs[200:]
    config, tokenizer, model = learn(taught)
    with tempfile.TemporaryDirectory() as folder:
        path = keep or Path(folder) / "toy.safetensors"
        card = {
            "languages": {"source": "zh", "target": "en"},
            "data": "200 sentences of a toy grammar",
            "licence": "CC0-1.0",
        }
        modelfile.save(path, config, weights_of(model), tokenizer, card, storage="int8")
        size = path.stat().st_size
        with Translator(path, "cpu") as translator:
            for name, some in (("taught", taught), ("held back", held_back)):
                outputs = translator.translate_batch([source for source, _ in some])
                right = sum(output.text == target for output, (_, target) in zip(outputs, some, strict=True))
                print(f"{name}: {right} of {len(some)} sentences exactly right")
            for output in translator.translate_batch([source for source, _ in taught[:2] + held_back[:4]]):
                print(f"  {output.source} → {output.text}")
    print(f"{time.perf_counter() - started:.0f} s, {size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
