// Exports models, runs them in llama.cpp and compares ids with Ingot's. See gguf.sh, which starts this.
import {execFileSync} from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import {pathToFileURL} from 'node:url';

const [root, work] = process.argv.slice(2);
const modules = path.join(work, 'node_modules', 'node-llama-cpp', 'dist', 'index.js');
const {getLlama, LlamaLogLevel} = await import(pathToFileURL(modules));
const llama = await getLlama({gpu: false, build: 'never', logLevel: LlamaLogLevel.error, maxThreads: 2});

const TOKENS = 100;
const TEXTS = ['Once upon a time, there was a tiny ship.', '  two  spaces\tand a tab\n\nlines 12345 3.14', 'naïve café — 你好 🦙',
               "it's  DON'T we'll", ' leading', 'the the the'];

function ingot(...words) {
  return execFileSync(path.join(root, 'build', 'ingot'), words, {encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe']});
}

// Greedy ids after `prompt` (ids), at most TOKENS, ending before the end of text. The cache is f32, as Ingot's.
async function continued(model, prompt) {
  const context = await model.createContext({contextSize: Math.min(model.trainContextSize, 256), sequences: 1,
                                             flashAttention: false, experimentalKvCacheKeyType: 'F32',
                                             experimentalKvCacheValueType: 'F32'});
  const ids = [];
  for await (const token of context.getSequence().evaluate(prompt, {temperature: 0})) {
    if (model.isEogToken(token)) break;
    ids.push(token);
    if (ids.length === TOKENS) break;
  }
  await context.dispose();
  return ids;
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

// In f32 all ids must be equal. Other types round weights (and llama.cpp the numbers that they meet), and its GELU comes
// from a table in f16: there texts part ways at some place, but not at once.
const EQUAL_WHEN_ROUNDED = 10;
// A few tokens over and over would come out of many a wrong model, too.
const FEWEST_DIFFERENT = 12;

async function compare(name, directory, {dtype = 'f32', exact = dtype === 'f32', prompts, texts = TEXTS}) {
  const file = path.join(work, `${name}-${dtype}.gguf`);
  ingot('export', directory, '--format', 'gguf', '--dtype', dtype, '--out', file);
  const model = await llama.loadModel({modelPath: file, gpuLayers: 0});
  const seen = new Set();
  for (const prompt of prompts) {
    const ours = JSON.parse(ingot('generate', directory, '--prompt', prompt, '--temperature', '0', '--max-tokens',
                                  String(TOKENS), '--json'));
    const end = ours.tokens.findIndex((id) => model.isEogToken(id));
    const tokens = end < 0 ? ours.tokens : ours.tokens.slice(0, end);
    for (const id of tokens) seen.add(id);
    const theirs = await continued(model, ours.prompt_ids);
    const at = firstDifference(theirs, tokens);
    const what = `${dtype}, ${tokens.length} greedy ids after ${JSON.stringify(prompt)}`;
    report(at < 0 || (!exact && at >= EQUAL_WHEN_ROUNDED), name,
           at < 0 ? what : `${what}: ${at} are equal, then llama.cpp has ${theirs[at]}, ingot ${tokens[at]}`);
  }
  report(seen.size >= FEWEST_DIFFERENT, name, `${seen.size} different ids among them`);
  compareTokens(name, directory, model, texts);
  await model.dispose();
}

// ---- models trained for a few steps on a few sentences, one of each architecture

const SENTENCES = ['The cat sat on the mat and looked at the rain.', 'It was 12 o\'clock, and nobody had come.',
                   'Once upon a time, there was a tiny ship on a wide sea.', 'Will it rain tomorrow? We\'ll see.'];

function trained(name, config, tokenizer = null) {
  const output = path.join(work, `run-${name}`);
  fs.rmSync(output, {recursive: true, force: true});
  const corpus = path.join(work, 'corpus.txt');
  let text = '';
  for (let i = 0; i < 600; ++i) text += SENTENCES[(i * 7 + (i >> 3)) % SENTENCES.length] + (i % 5 ? ' ' : '\n');
  fs.writeFileSync(corpus, text);
  const yaml = path.join(work, `${name}.json`);
  fs.writeFileSync(yaml, JSON.stringify({
    output_dir: output,
    model: {config: {initializer_range: 0.2, ...config}},
    tokenizer: tokenizer ? {path: tokenizer} : {path: path.join(work, `tokenizer-${name}.json`), train_vocab_size: 300},
    data: {train: [{path: corpus}], sequence_length: 64},
    training: {steps: tokenizer ? 1 : 20, global_batch_size: 4},
    optimizer: {learning_rate: 1e-3},
    logging: {tensorboard: false},
  }));
  fs.rmSync(path.join(work, `tokenizer-${name}.json`), {force: true});
  ingot('train', yaml);
  return path.join(output, 'model');
}

const LLAMA = {model_type: 'llama', hidden_size: 64, intermediate_size: 96, num_hidden_layers: 2, num_attention_heads: 4,
               num_key_value_heads: 2, max_position_embeddings: 256};
const ARCHITECTURES = {
  gpt2: {model_type: 'gpt2', n_embd: 64, n_layer: 2, n_head: 4, n_positions: 256},
  'gpt2-untied': {model_type: 'gpt2', n_embd: 64, n_layer: 2, n_head: 4, n_positions: 256, n_inner: 160,
                  tie_word_embeddings: false},
  'llama-biases-head-dim': {...LLAMA, head_dim: 32, attention_bias: true, mlp_bias: true},
  'llama-rope-linear': {...LLAMA, rope_scaling: {type: 'linear', factor: 4.0}},
  'llama-rope-llama3': {...LLAMA, rope_scaling: {rope_type: 'llama3', factor: 8.0, low_freq_factor: 1.0,
                                                 high_freq_factor: 4.0, original_max_position_embeddings: 64}},
  mistral: {...LLAMA, model_type: 'mistral', sliding_window: 200, tie_word_embeddings: true},
  qwen2: {...LLAMA, model_type: 'qwen2'},
  qwen3: {...LLAMA, model_type: 'qwen3', head_dim: 32},
  gemma2: {...LLAMA, model_type: 'gemma2', num_hidden_layers: 3, head_dim: 24, query_pre_attn_scalar: 24, sliding_window: 16,
           attn_logit_softcapping: 5.0, final_logit_softcapping: 4.0, initializer_range: 0.05},
};

const stories = path.join(root, '..', 'shared', 'data', 'stories260k');
if (fs.existsSync(path.join(stories, 'model.safetensors'))) {
  const prompts = ['', 'Lily and Ben', 'The dog was'];
  for (const dtype of ['f32', 'f16', 'bf16', 'q8_0']) await compare('stories260k', stories, {dtype, prompts});
} else {
  console.log(`stories260k is not there (${stories}): only models trained here are compared`);
}
const PROMPTS = ['The cat', 'Once upon a time', '12 ships', 'Will'];
for (const [name, config] of Object.entries(ARCHITECTURES))
  await compare(name, trained(name, config), {exact: config.model_type !== 'gpt2', prompts: PROMPTS});

// ---- real vocabularies, on their golden texts

for (const kind of ['gpt2', 'llama3', 'llama2']) {
  const folder = path.join(root, '..', 'shared', 'data', 'tokenizers', kind);
  if (!fs.existsSync(path.join(folder, 'golden.json'))) {
    console.log(`the tokenizer ${kind} is not there (${folder})`);
    continue;
  }
  const texts = JSON.parse(fs.readFileSync(path.join(folder, 'golden.json'), 'utf8')).map((one) => one.text);
  const directory = trained(kind, {...LLAMA, hidden_size: 32, num_hidden_layers: 1}, folder);
  await compare(`tokenizer ${kind}`, directory, {prompts: ['The cat'], texts});
}
await llama.dispose();
console.log(failures.length === 0 ? 'gguf oracle: all agree' : `gguf oracle: ${failures.length} comparisons FAIL`);
process.exit(failures.length === 0 ? 0 : 1);
