// Exports models, runs them in llama.cpp and compares ids with Ingot's. See gguf.sh, which starts this.
import {execFileSync} from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import {pathToFileURL} from 'node:url';

const [root, work, flag] = process.argv.slice(2);
const store = flag === '--store';
const [sequenceLogits, randomModelProgram] =
    ['sequence_logits', 'random_model'].map((name) => path.join(root, 'build', 'tests', 'oracles', name));
const modules = path.join(work, 'node_modules', 'node-llama-cpp', 'dist', 'index.js');
const {getLlama, LlamaLogLevel} = await import(pathToFileURL(modules));
// One thread: models are tiny, and two that wait for each other on a busy machine are far slower.
const llama = await getLlama({gpu: false, build: 'never', logLevel: LlamaLogLevel.error, maxThreads: 1});

const TOKENS = 100;
const TEXTS = ['Once upon a time, there was a tiny ship.', '  two  spaces\tand a tab\n\nlines 12345 3.14', 'naïve café — 你好 🦙',
               "it's  DON'T we'll", ' leading', 'the the the'];

function ingot(...words) {
  return execFileSync(path.join(root, 'build', 'ingot'), words, {encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe']});
}

// A context with an f32 cache, as Ingot's is.
function contextOf(model) {
  return model.createContext({contextSize: Math.min(model.trainContextSize, 256), sequences: 1, flashAttention: false,
                              experimentalKvCacheKeyType: 'F32', experimentalKvCacheValueType: 'F32'});
}

// Greedy ids after `prompt` (ids), at most TOKENS, ending before the end of text.
async function continued(model, prompt) {
  const context = await contextOf(model);
  const ids = [];
  for await (const token of context.getSequence().evaluate(prompt, {temperature: 0})) {
    if (model.isEogToken(token)) break;
    ids.push(token);
    if (ids.length === TOKENS) break;
  }
  await context.dispose();
  return ids;
}

// llama.cpp's logits of `ids` and of its two highest after each token of a sequence: a Map from id to logit each.
async function theirLogits(model, sequence, ids) {
  const context = await contextOf(model);
  const generateNext = {logits: {filter: {tokens: ids, includeTop: 2}}, options: {temperature: 0}};
  const out = await context.getSequence().controlledEvaluate(sequence.map((token) => [token, {generateNext}]));
  await context.dispose();
  return out.map((one) => one.next.logits);
}

// Ingot's after each token of a sequence: a row of vocab_size each.
function ourLogits(directory, sequence) {
  const list = path.join(work, 'ids.json'), out = path.join(work, 'logits');
  fs.writeFileSync(list, JSON.stringify([sequence]));
  execFileSync(sequenceLogits, [directory, list, out]);
  const bytes = fs.readFileSync(out);
  const all = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
  const width = all.length / sequence.length;
  return sequence.map((_, t) => all.subarray(t * width, (t + 1) * width));
}

function firstDifference(a, b) {
  const length = Math.max(a.length, b.length);
  for (let i = 0; i < length; ++i)
    if (a[i] !== b[i]) return i;
  return -1;
}

const failures = [];
function report(ok, name, what) {
  console.log(`${ok ? 'ok  ' : 'FAIL'} ${name}: ${what}`);
  if (!ok) failures.push(name);
}

function compareTokens(name, directory, model, texts) {
  const different = texts.filter((text) => {
    const encoded = JSON.parse(ingot('tokenizer', 'encode', '--tokenizer', directory, '--text', text, '--json'));
    return firstDifference([...model.tokenize(text)], encoded.ids) >= 0;
  });
  report(different.length === 0, name, `tokens of ${texts.length} texts`);
  for (const text of different) console.log(`     ${JSON.stringify(text)}`);
}

// Types other than f32 round weights, and llama.cpp the numbers that they meet: texts part ways at some place, but not
// at once.
const EQUAL_WHEN_ROUNDED = 10;
// A few tokens over and over would come out of many a wrong model, too.
const FEWEST_DIFFERENT = 12;
// Logits in f32, of the largest one. llama.cpp looks GELU up in a table that has its argument and its value in f16
// (ggml_gelu_f16): a rounding of 2^-11 on every activation.
const TOLERANCE = 1e-4, TOLERANCE_GELU = 1e-3;
// Results are stored where our highest two logits stay so far apart that no instruction set's rounding changes an id.
const SAFE_MARGIN = 1e-3;
// So many logits of a large vocabulary are compared, beside the highest.
const COMPARED = 500;

function distanceOfHighestTwo(logits) {
  let first = -Infinity, second = -Infinity;
  for (const logit of logits) {
    if (logit > first) [first, second] = [logit, first];
    else if (logit > second) second = logit;
  }
  return first - second;
}

// What the logits of both say in f32 over the prompt and the tokens that both gave: their largest difference, the least
// distance of the highest two where a token was chosen (llama.cpp's and ours), and llama.cpp's distance of the two
// `candidates` for the next.
async function compareLogits(directory, model, prompt, common, candidates) {
  const config = JSON.parse(fs.readFileSync(path.join(directory, 'config.json'), 'utf8'));
  const step = Math.ceil(config.vocab_size / COMPARED);
  const ids = [...new Set([...candidates, ...Array.from({length: Math.floor(config.vocab_size / step)}, (_, i) => i * step)])];
  const sequence = [...prompt, ...common];
  const theirs = await theirLogits(model, sequence, ids), ours = ourLogits(directory, sequence);
  let worst = 0, largest = 1, margin = Infinity, ourMargin = Infinity;
  theirs.forEach((logits, t) => {
    for (const [id, logit] of logits) {
      worst = Math.max(worst, Math.abs(logit - ours[t][id]));
      largest = Math.max(largest, Math.abs(logit));
    }
    const chose = t >= prompt.length - 1 && t - prompt.length + 1 < common.length;
    if (!chose) return;
    margin = Math.min(margin, distanceOfHighestTwo(logits.values()));
    ourMargin = Math.min(ourMargin, distanceOfHighestTwo(ours[t]));
  });
  const last = theirs.at(-1);
  const gap = candidates.length === 2 ? Math.abs(last.get(candidates[0]) - last.get(candidates[1])) : Infinity;
  const gelu = ['gpt2', 'gemma2'].includes(config.model_type);
  return {worst, margin, ourMargin, gap, within: worst <= (gelu ? TOLERANCE_GELU : TOLERANCE) * largest};
}

// Compares greedy ids and, in f32, logits. In f32 all ids must be equal; where both engines' logits agree and llama.cpp's
// own for the two ids are no further apart than both engines' may be, the texts part by rounding, which is said.
async function comparePrompt(name, directory, model, dtype, prompt) {
  const ours = JSON.parse(ingot('generate', directory, '--prompt', prompt, '--temperature', '0', '--max-tokens',
                                String(TOKENS), '--json'));
  const end = ours.tokens.findIndex((id) => model.isEogToken(id));
  const tokens = end < 0 ? ours.tokens : ours.tokens.slice(0, end);
  const theirs = await continued(model, ours.prompt_ids);
  const at = firstDifference(theirs, tokens);
  const what = `${dtype}, ${tokens.length} greedy ids after ${JSON.stringify(prompt)}`;
  const parting = `${at} are equal, then llama.cpp has ${theirs[at]}, ingot ${tokens[at]}`;
  const result = {prompt, prompt_ids: ours.prompt_ids, ids: theirs};
  if (dtype !== 'f32') {
    report(at < 0 || at >= EQUAL_WHEN_ROUNDED, name, at < 0 ? what : `${what}: ${parting}`);
    return result;
  }
  const candidates = [theirs[at], tokens[at]].filter((id) => id !== undefined);
  const found = await compareLogits(directory, model, ours.prompt_ids, at < 0 ? tokens : tokens.slice(0, at), candidates);
  const figures = `logits differ by ${found.worst.toExponential(1)}, the highest two of llama.cpp are ` +
                  `${found.margin.toExponential(1)} apart or more`;
  const tie = found.within && found.gap <= 2 * found.worst;
  if (at < 0) report(found.within, name, `${what}; ${figures}`);
  else report(tie, name, `${what}: ${parting}, which are ${found.gap.toExponential(1)} apart there` +
                         `${tie ? ', a tie' : ''}; ${figures}`);
  return {...result, safe: at < 0 && found.within && found.ourMargin >= SAFE_MARGIN};
}

async function compare(name, directory, {dtype = 'f32', prompts, texts = TEXTS}) {
  const file = path.join(work, `${name}-${dtype}.gguf`);
  ingot('export', directory, '--format', 'gguf', '--dtype', dtype, '--out', file);
  const model = await llama.loadModel({modelPath: file, gpuLayers: 0});
  const results = [];
  for (const prompt of prompts) results.push(await comparePrompt(name, directory, model, dtype, prompt));
  const seen = new Set(results.flatMap((one) => one.ids));
  report(seen.size >= FEWEST_DIFFERENT, name, `${seen.size} different ids among them`);
  compareTokens(name, directory, model, texts);
  await model.dispose();
  return {file, results};
}

const stories = path.join(root, '..', 'shared', 'data', 'stories260k');
if (store) {
  console.log('only the models of random weights, whose results are stored');
} else if (fs.existsSync(path.join(stories, 'model.safetensors'))) {
  const prompts = ['', 'Lily and Ben', 'The dog was'];
  for (const dtype of ['f32', 'f16', 'bf16', 'q8_0']) await compare('stories260k', stories, {dtype, prompts});
} else {
  console.log(`stories260k is not there (${stories}): only models made here are compared`);
}

// ---- models of random weights, one of each architecture; tests/integration/llama_cpp_test.cc has what is stored of them

const golden = path.join(root, 'tests', 'golden', 'llama_cpp');
const PROMPTS = ['The cat', 'Once upon a time', '12 ships', 'Will'];
const SEEDS = 100;

function randomModel(name, config, seed) {
  const directory = path.join(work, name), file = path.join(work, 'config.json');
  fs.rmSync(directory, {recursive: true, force: true});
  fs.writeFileSync(file, JSON.stringify(config));
  execFileSync(randomModelProgram, [file, String(seed), directory]);
  fs.copyFileSync(path.join(golden, 'tokenizer.json'), path.join(directory, 'tokenizer.json'));
  return directory;
}

// CRC-32C, reflected.
function checksum(file) {
  let crc = ~0;
  for (const byte of fs.readFileSync(file)) {
    crc ^= byte;
    for (let i = 0; i < 8; ++i) crc = crc >>> 1 ^ (crc & 1 ? 0x82F63B78 : 0);
  }
  return ~crc >>> 0;
}

// The first seed whose model gives 100 ids after every prompt, with logits far enough apart.
async function resultsToStore(name, config) {
  for (let seed = 1; seed <= SEEDS; ++seed) {
    const before = failures.length;
    const {file, results} = await compare(name, randomModel(name, config, seed), {prompts: PROMPTS});
    if (results.every((one) => one.safe && one.ids.length === TOKENS) && failures.length === before)
      return {seed, gguf_crc32c: checksum(file), prompts: results.map(({safe, ...one}) => one)};
    failures.splice(before);
  }
  throw new Error(`${name}: none of ${SEEDS} seeds has logits far enough apart`);
}

const architectures = JSON.parse(fs.readFileSync(path.join(golden, 'models.json'), 'utf8'));
const resultsFile = path.join(golden, 'results.json');
if (store) {
  const results = [];
  for (const [name, config] of Object.entries(architectures)) results.push([name, await resultsToStore(name, config)]);
  const lines = results.map(([name, one]) => `${JSON.stringify(name)}: ${JSON.stringify(one)}`);
  fs.writeFileSync(resultsFile, `{\n${lines.join(',\n')}\n}\n`);
  process.exit(0);
}
const stored = JSON.parse(fs.readFileSync(resultsFile, 'utf8'));
for (const [name, config] of Object.entries(architectures)) {
  const {file, results} = await compare(name, randomModel(name, config, stored[name].seed), {prompts: PROMPTS});
  const same = results.every(({ids}, i) => firstDifference(ids, stored[name].prompts[i].ids) < 0);
  report(same && checksum(file) === stored[name].gguf_crc32c, name, 'the file and the ids are those that are stored');
}

// ---- real vocabularies, on their golden texts

const SENTENCES = ['The cat sat on the mat and looked at the rain.', 'It was 12 o\'clock, and nobody had come.',
                   'Once upon a time, there was a tiny ship on a wide sea.', 'Will it rain tomorrow? We\'ll see.'];
const LLAMA = {model_type: 'llama', hidden_size: 32, intermediate_size: 96, num_hidden_layers: 1, num_attention_heads: 4,
               num_key_value_heads: 2, max_position_embeddings: 256, initializer_range: 0.2};

// A model trained for one step on a few sentences.
function trained(name, config, tokenizer) {
  const output = path.join(work, `run-${name}`);
  fs.rmSync(output, {recursive: true, force: true});
  const corpus = path.join(work, 'corpus.txt');
  let text = '';
  for (let i = 0; i < 600; ++i) text += SENTENCES[(i * 7 + (i >> 3)) % SENTENCES.length] + (i % 5 ? ' ' : '\n');
  fs.writeFileSync(corpus, text);
  const yaml = path.join(work, `${name}.json`);
  fs.writeFileSync(yaml, JSON.stringify({
    output_dir: output,
    model: {config},
    tokenizer: {path: tokenizer},
    data: {train: [{path: corpus}], sequence_length: 64},
    training: {steps: 1, global_batch_size: 4},
    logging: {tensorboard: false},
  }));
  ingot('train', yaml);
  return path.join(output, 'model');
}

for (const kind of ['gpt2', 'llama3', 'llama2']) {
  const folder = path.join(root, '..', 'shared', 'data', 'tokenizers', kind);
  if (!fs.existsSync(path.join(folder, 'golden.json'))) {
    console.log(`the tokenizer ${kind} is not there (${folder})`);
    continue;
  }
  const texts = JSON.parse(fs.readFileSync(path.join(folder, 'golden.json'), 'utf8')).map((one) => one.text);
  const directory = trained(kind, LLAMA, folder);
  await compare(`tokenizer ${kind}`, directory, {prompts: ['The cat'], texts});
}
await llama.dispose();
console.log(failures.length === 0 ? 'gguf oracle: all agree' : `gguf oracle: ${failures.length} comparisons FAIL`);
process.exit(failures.length === 0 ? 0 : 1);
