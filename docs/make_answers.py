"""Write docs/data/small.jsonl.gz and large.jsonl.gz, a minute: python docs/make_answers.py.

Two language models, of letters, complete words of English text that they have not seen: the
documentation of Python, numpy, scipy, scikit-learn and pandas, one word from each paragraph. They
count which letter follows the letters before it (interpolated as by Witten and Bell, 1991). The
small one looks 5 letters back, and has read a quarter of what the large one has, which looks 9 back.

Each line has the number of the case, which is its time, the end of what the model saw, its most
probable answer, the log-probability of this answer, those of five samples, and a verdict: whether
the author wrote this word. Of the first 1,500 cases 1,000 have one, drawn at random; of the later
1,000 all.
"""

import gzip
import inspect
import json
import pkgutil
import re
from collections import Counter, defaultdict
from importlib import import_module
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np

FOLDER = Path(__file__).parent / "data"
N_CASES, N_FIRST, N_JUDGED, N_SAMPLES = 2500, 1500, 1000, 5
LETTERS = "abcdefghijklmnopqrstuvwxyz "


def read_paragraphs():
    """Return distinct paragraphs of prose, with letters and single blanks only."""
    texts = list(topics.values())
    for package in ("numpy", "scipy", "sklearn", "pandas"):
        home = import_module(package)
        for found in pkgutil.iter_modules(home.__path__, f"{package}."):
            if found.name.rpartition(".")[2][0] == "_" or "test" in found.name:
                continue
            module = import_module(found.name)
            for name, thing in sorted(vars(module).items()):
                if name[0] != "_" and str(getattr(thing, "__module__", "")).startswith(package):
                    texts.append(inspect.getdoc(thing) or "")
                    own = vars(thing).values() if inspect.isclass(thing) else []
                    texts += [inspect.getdoc(x) or "" for x in own if callable(x)]
    kept = {}
    for part in re.split(r"\n\s*\n", "\n\n".join(texts)):
        words = re.sub(r"[^a-z]+", " ", part.lower()).strip()
        if len(words) > 120 and len(words) > 0.85 * len(" ".join(part.split())):
            kept[words] = None
    return list(kept)


class Letters:
    """A model of the next letter, from those before it."""

    def __init__(self, text, order):
        self.order, self.counts = order, [defaultdict(Counter) for _ in range(order + 1)]
        for k in range(order + 1):
            for i in range(k, len(text)):
                self.counts[k][text[i - k : i]][text[i]] += 1

    def predict(self, before):
        """Return the probability of each letter."""
        proba = np.full(len(LETTERS), 1 / len(LETTERS))
        for k in range(self.order + 1):
            seen = self.counts[k].get(before[len(before) - k :])
            if seen is None:
                break
            found = np.array([seen[letter] for letter in LETTERS])
            proba = (found + len(seen) * proba) / (found.sum() + len(seen))
        return proba

    def complete(self, before, rng=None):
        """Return the rest of a word and its log-probability: the most probable letters, or drawn."""
        rest, log_proba = "", 0.0
        while not rest.endswith(" ") and len(rest) < 20:
            proba = self.predict(before + rest)
            k = int(proba.argmax() if rng is None else rng.choice(len(LETTERS), p=proba))
            rest, log_proba = rest + LETTERS[k], log_proba + np.log(proba[k])
        return rest.strip(), log_proba


def main():
    rng = np.random.default_rng(0)
    paragraphs = [str(one) for one in rng.permutation(read_paragraphs())]
    cases = []
    for text in paragraphs:
        words = [x for x in re.finditer(r"[a-z]{5,}", text) if x.start() > 40]
        if words and len(cases) < N_CASES:
            word = words[rng.integers(len(words))]
            cases.append((text[: word.start()], word[0]))
    training = " ".join(paragraphs[N_CASES + 200 :])
    judged = {*rng.choice(N_FIRST, N_JUDGED, replace=False).tolist(), *range(N_FIRST, N_CASES)}
    for name, share, order in [("small", 4, 5), ("large", 1, 9)]:
        model, lines = Letters(training[: len(training) // share], order), []
        for number, (before, word) in enumerate(cases):
            start = word[:4]
            rest, score = model.complete(before + start)
            samples = [start + model.complete(before + start, rng)[0] for _ in range(N_SAMPLES)]
            right = "right" if start + rest == word else "wrong"
            lines.append({
                "case": number, "prompt": before[-20:] + start, "answer": start + rest,
                "score": round(float(score), 3), "samples": " ".join(samples),
                "verdict": right if number in judged else None,
            })  # fmt: skip
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        (FOLDER / f"{name}.jsonl.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
